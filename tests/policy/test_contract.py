"""Every shipped policy keeps the contract."""

import numpy as np

from surefoot import (
    BOBOS,
    GPUCB,
    RGPE,
    RMBOBOS,
    RMGPTS,
    RMGPUCB,
    TAF,
    ExpectedImprovement,
    MaxValueEntropySearch,
    ProbabilityOfImprovement,
    RandomSearch,
    SobolSearch,
    Task,
    ThompsonSampling,
)
from surefoot.testing import PolicyContract


class TestRandomSearch(PolicyContract):
    policy = RandomSearch


class TestSobolSearch(PolicyContract):
    policy = SobolSearch


class TestGPUCB(PolicyContract):
    policy = GPUCB


class TestExpectedImprovement(PolicyContract):
    policy = ExpectedImprovement


class TestProbabilityOfImprovement(PolicyContract):
    policy = ProbabilityOfImprovement
    options = {"margin": 0.01}


class TestThompsonSampling(PolicyContract):
    policy = ThompsonSampling
    options = {"features": 128}


class TestMaxValueEntropySearch(PolicyContract):
    policy = MaxValueEntropySearch


class TransferContract(PolicyContract):
    """Policies that know earlier tasks get two of them: one like the target, one unlike it."""

    def make(self, kind, **options):
        domain = options.get("domain") or self.domain(kind)
        X = domain.sample(9, np.random.default_rng(5))
        y = np.array([self.value(domain, x) for x in X])
        return super().make(kind, tasks=[Task(X, y + 0.1, name="alike"), Task(X, -y)], **options)


class TestRMGPUCB(TransferContract):
    policy = RMGPUCB


class TestRMGPTS(TransferContract):
    policy = RMGPTS
    options = {"features": 128}


class TestRGPE(TransferContract):
    policy = RGPE
    options = {"samples": 50}


class TestTAF(TransferContract):
    policy = TAF


class TestBOBOS(PolicyContract):
    policy = BOBOS
    options = {"epochs": 12}


class TestRMBOBOS(TransferContract):
    policy = RMBOBOS
    options = {"epochs": 12}
