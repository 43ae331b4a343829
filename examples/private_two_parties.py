"""A clinic finds the patient a costly test helps most, with an optimizer that never sees a patient's record.

Two processes and a pipe between them; what crosses is JSON.  python examples/private_two_parties.py
"""

import json
import multiprocessing as mp

import numpy as np

from surefoot.private import Answer, Ask, Curator, GaussianRelease, Ledger, Modeler, Release

BOUNDS = [(18.0, 90.0), (15.0, 45.0)]  # age and body mass index: limits that everybody knows


def clinic(pipe) -> None:
    """The curator: holds the table, releases noisy rows once, tests the patients it is asked for."""
    rng = np.random.default_rng(0)
    patients = np.column_stack([rng.uniform(20, 85, 1000), rng.normal(27, 4, 1000).clip(16, 44)])

    def test(row) -> float:
        return float(np.exp(-(((row[0] - 61) / 15) ** 2) - ((row[1] - 31) / 5) ** 2) + 0.02 * rng.standard_normal())

    mechanism = GaussianRelease(epsilon=3.0, delta=1e-5, bounds=BOUNDS, radius=25.0, neighbor=1.0)
    curator = Curator(patients, test, mechanism, asks=25, ledger=Ledger(epsilon=3.0, delta=1e-5))
    release = curator.release()
    print(release.guarantee, "\n", flush=True)
    pipe.send(json.dumps(release.to_wire()))
    while curator.state != "closed":
        answer = curator.handle(json.loads(pipe.recv()))
        if answer is not None:
            pipe.send(json.dumps(answer))
    best = patients[curator.chosen]
    print(f"the clinic: test the patient aged {best[0]:.0f} with a body mass index of {best[1]:.0f}", flush=True)


def optimizer(pipe) -> None:
    """The modeler: sees noisy rows and answers, and knows how much noise there is."""
    modeler = Modeler(Release.from_wire(json.loads(pipe.recv())), seed=0)

    def over_the_wire(ask: Ask) -> Answer:
        pipe.send(json.dumps(ask.to_wire()))
        return Answer.from_wire(json.loads(pipe.recv()))

    close = modeler.run(over_the_wire)
    print(f"the optimizer: {len(modeler.policy.history)} answers, best row {close.index}", flush=True)
    pipe.send(json.dumps(close.to_wire()))


if __name__ == "__main__":
    ours, theirs = mp.get_context("spawn").Pipe()
    parties = [
        mp.get_context("spawn").Process(target=work, args=(end,)) for work, end in ((clinic, ours), (optimizer, theirs))
    ]
    for party in parties:
        party.start()
    for party in parties:
        party.join()
    assert all(party.exitcode == 0 for party in parties)
