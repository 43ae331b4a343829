"""One party holds the data, another looks for the best record.

Mechanisms say how data are blurred before they leave, a ledger says how much privacy that has cost so far and refuses
what would cost too much, an audit tries to find out more than the guarantee allows.

>>> from surefoot.private import GaussianEvent, Ledger
>>> ledger = Ledger(epsilon=2.0, delta=1e-5)
>>> ledger.charge(GaussianEvent(noise_multiplier=4.0), what="first release")
>>> round(ledger.spent(), 2), round(ledger.remaining(), 2)
(0.93, 1.07)
"""

from __future__ import annotations

from surefoot import lazy

__getattr__, __dir__, __all__ = lazy.names(
    __name__,
    {
        "accounting": [
            "GaussianEvent",
            "StatedEvent",
            "delta",
            "epsilon",
            "gaussian_delta",
            "gaussian_scale",
            "noise_multiplier",
        ],
        "guarantee": ["Failure", "Guarantee"],
        "scaling": ["PublicScale"],
        "mechanisms": ["GaussianRelease", "Mechanism"],
        "laplace": ["LaplaceRelease"],
        "full_lift": ["FullLift"],
        "projection": [
            "PublishedProjection",
            "composed_epsilon",
            "largest_dimension",
            "omega",
            "threshold_epsilon",
        ],
        "outputs": ["OutputRelease"],
        "learn": ["Learned", "learn_bounds", "learn_hyperparameters"],
        "messages": ["Answer", "Ask", "Close", "Release"],
        "curator": ["Curator"],
        "modeler": ["Modeler"],
        "utility": ["Preflight", "preflight"],
        "noise": ["Noise", "ResearchNoise", "SystemNoise"],
        "ledger": ["Ledger"],
        "discrete": ["NoiseShares", "discrete_gaussian"],
        "search": ["Repeats", "Selected", "private_search", "selection_epsilon", "selection_multiplier"],
        "audit": ["Audit", "AuditCase", "Bound", "Reconstruction", "lower_bound", "reconstruct"],
    },
)
