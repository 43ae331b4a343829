"""Every shipped policy keeps the contract."""

from surefoot import (
    GPUCB,
    ExpectedImprovement,
    MaxValueEntropySearch,
    ProbabilityOfImprovement,
    RandomSearch,
    SobolSearch,
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
