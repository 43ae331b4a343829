"""A private release explored by TruVaR and by Thompson sampling: whoever optimizes may use any policy.

python examples/combined_private_policies.py        (needs: pip install 'surefoot[private]')
"""

import numpy as np

from surefoot import ThompsonSampling, TruVaR
from surefoot.private import Curator, GaussianRelease, Modeler

rng = np.random.default_rng(0)
HOUSES = rng.uniform(0.0, 1.0, (400, 2))  # what must not leave: where every house stands


def demand(house: np.ndarray) -> float:
    """A survey at one house."""
    return float(np.exp(-8.0 * ((house - [0.3, 0.7]) ** 2).sum()) + 0.02 * rng.standard_normal())


def ask_for_rows(policy, **options):
    """Both parties in one process; see private_two_parties.py for two."""
    mechanism = GaussianRelease(epsilon=4.0, delta=1e-5, bounds=[(0.0, 1.0)] * 2, radius=0.4, neighbor=0.05)
    curator = Curator(HOUSES, demand, mechanism, asks=20)
    modeler = Modeler(curator.release(), policy, seed=0, **options)
    curator.close(modeler.run(curator.answer))
    return curator, modeler


for policy in (TruVaR, ThompsonSampling):
    curator, modeler = ask_for_rows(policy)
    print(f"{policy.__name__}: demand {demand(HOUSES[curator.chosen]):.2f} at the chosen house, of at most 1")

# TruVaR can also say which rows lie above a level. That answer stays with the modeler: no single row is named.
curator, modeler = ask_for_rows(TruVaR, goal="level", threshold=0.5)
found = modeler.recommend()
truth = np.exp(-8.0 * ((HOUSES - [0.3, 0.7]) ** 2).sum(axis=1)) > 0.5
print(f"level 0.5: {found.above.sum()} rows surely above, {found.undecided.sum()} undecided, {truth.sum()} in truth")
