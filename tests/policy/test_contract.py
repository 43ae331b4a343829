"""Every shipped policy keeps the contract."""

import numpy as np
import pytest

from surefoot import (
    BOBOS,
    DBGPUCB,
    GP,
    GPLSE,
    GPUCB,
    GPUCBPE,
    QEI,
    RGPE,
    RGPUCB,
    RMBOBOS,
    RMGPTS,
    RMGPUCB,
    TAF,
    TVGPUCB,
    AddGPUCB,
    Ball,
    EntropySearch,
    ExpectedImprovement,
    Fidelity,
    Groups,
    LocalPenalization,
    MacroGPO,
    Matern,
    MaxiMinGPUCB,
    MaxValueEntropySearch,
    MinimumRegretSearch,
    ProbabilityOfImprovement,
    RandomLevelSet,
    RandomSearch,
    RobustBatch,
    RobustReport,
    SobolSearch,
    Space,
    StableOpt,
    Straddle,
    Task,
    ThompsonSampling,
    TrustRegion,
    TruVaR,
    VarianceSampling,
    WeightedBox,
)
from surefoot.federated import Agent, Broadcast, Decay, Message, SharedFeatures
from surefoot.testing import PolicyContract


class TestRandomSearch(PolicyContract):
    policy = RandomSearch


class TestSobolSearch(PolicyContract):
    policy = SobolSearch


class TestGPUCB(PolicyContract):
    policy = GPUCB


class TestAddGPUCB(PolicyContract):
    policy = AddGPUCB
    options = {"groups": 2, "candidates": 200}


class TestTrustRegion(PolicyContract):
    policy = TrustRegion


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


class TestEntropySearch(PolicyContract):
    policy = EntropySearch
    options = {"samples": 64}


class TestMinimumRegretSearch(PolicyContract):
    policy = MinimumRegretSearch
    options = {"samples": 64}


@pytest.mark.slow
class TestMinimumRegretSearchAtAPoint(PolicyContract):
    policy = MinimumRegretSearch
    options = {"version": "point"}


class CostlyInBoxes(PolicyContract):
    """Policies that search a box within a box: what wraps them asks for dozens of queries, in boxes only when slow."""

    @pytest.mark.parametrize(
        "kind", ["Candidates", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("Box", "Space"))]
    )
    def test_inside_another_policy_it_asks_the_very_same(self, kind, tmp_path):
        super().test_inside_another_policy_it_asks_the_very_same(kind, tmp_path)


class TestStableOpt(CostlyInBoxes):
    policy = StableOpt
    options = {"perturbation": Ball(0.6)}


class TestMaxiMinGPUCB(CostlyInBoxes):
    policy = MaxiMinGPUCB

    def build(self, domain, **options):
        radii = {"rate": 0.2, "depth": 1.3} if isinstance(domain, Space) else [0.6, 1.3]
        return super().build(domain, perturbation=WeightedBox(radii), **options)


@pytest.mark.slow
class TestStableOptOverSwappedChoices(PolicyContract):
    policy = StableOpt

    def build(self, domain, **options):
        swapped = Groups({"kind": {"ab": ["a", "b"]}}) if isinstance(domain, Space) else Ball(0.6)
        return super().build(domain, perturbation=swapped, **options)


class Reported:
    """Makes a RobustReport around a policy of one kind, as the suite makes any other."""

    domains = RobustReport.domains
    __name__ = "RobustReport"

    def __init__(self, kind, own=False):
        self.kind, self.own = kind, own

    def __call__(self, domain, *, journal=None, **options):
        measuring = self.kind(domain, **options)
        return RobustReport(measuring, Ball(0.6), journal=journal, gp=GP.automatic(domain) if self.own else None)


class TestRobustReport(PolicyContract):
    policy = Reported(GPUCB)


class TestRobustReportWithABeliefOfItsOwn(PolicyContract):
    policy = Reported(RandomSearch, own=True)


class TransferContract(PolicyContract):
    """Policies that know earlier tasks get two of them: one like the target, one unlike it."""

    def build(self, domain, **options):
        X = domain.sample(9, np.random.default_rng(5))
        y = np.array([self.value(domain, x) for x in X])
        return super().build(domain, tasks=[Task(X, y + 0.1, name="alike"), Task(X, -y)], **options)


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


class TestTruVaR(PolicyContract):
    policy = TruVaR
    options = {"points": 64}


@pytest.mark.slow
class TestTruVaRMonotone(PolicyContract):
    policy = TruVaR
    options = {"points": 64, "scale": 2.0, "monotone": True, "among": "potential"}


class TestTruVaRLevel(PolicyContract):
    policy = TruVaR
    options = {
        "points": 64,
        "goal": "level",
        "threshold": 1.8,
        "monotone": True,
        "fidelities": [Fidelity(1e-6, 3.0), Fidelity(0.1, 1.0)],
    }


@pytest.mark.slow
class TestTruVaRImplicitLevel(PolicyContract):
    policy = TruVaR
    options = {"points": 64, "goal": "level", "fraction": 0.9, "among": 10}


class TestGPLSE(PolicyContract):
    policy = GPLSE
    options = {"threshold": 1.8, "points": 64}


@pytest.mark.slow
class TestGPLSEIntersected(PolicyContract):
    policy = GPLSE
    options = {"threshold": 1.8, "points": 64, "intersect": True, "gp": GP(Matern(2.5), noise=0.01, mean=1.5)}


class TestStraddle(PolicyContract):
    policy = Straddle
    options = {"fraction": 0.9, "points": 64}


class TestVarianceSampling(PolicyContract):
    policy = VarianceSampling
    options = {"threshold": 1.8, "points": 64, "monotone": True}


class TestRandomLevelSet(PolicyContract):
    policy = RandomLevelSet
    options = {"threshold": 1.8, "points": 64}


class Clock(PolicyContract):
    """Policies that take the time get it at every ask, in uneven steps."""

    def context(self, step):
        return {"time": 20.0 + step + 0.3 * (step % 2)}  # after what is told without a time


class TestTVGPUCB(Clock):
    policy = TVGPUCB
    options = {"forgetting": 0.05}


class TestTVGPUCBLearning(Clock):
    policy = TVGPUCB


@pytest.mark.slow
class TestTVGPUCBWithoutTimes(PolicyContract):
    policy = TVGPUCB
    options = {"forgetting": 0.2, "memory": 3}


class TestRGPUCB(Clock):
    policy = RGPUCB
    options = {"block": 4}


class TestRobustBatch(PolicyContract):
    policy = RobustBatch
    options = {"tau": 2, "beta": 1.0, "pool": 60}


@pytest.mark.slow
class TestRobustBatchAuto(PolicyContract):
    policy = RobustBatch
    options = {"tau": 2, "method": "auto", "pool": 60}


class TestDBGPUCB(PolicyContract):
    policy = DBGPUCB


@pytest.mark.slow
class TestDBGPUCBLinear(PolicyContract):
    policy = DBGPUCB
    options = {"bonus": "linear", "exploration": 0.5, "gp": GP(Matern(2.5), noise=0.01, mean=1.5)}


class TestGPUCBPE(PolicyContract):
    policy = GPUCBPE


class TestLocalPenalization(PolicyContract):
    policy = LocalPenalization


class TestQEI(PolicyContract):
    policy = QEI
    options = {"samples": 32, "sweeps": 1}


class TestMacroGPO(PolicyContract):
    policy = MacroGPO
    options = {"horizon": 2, "samples": 8}


@pytest.mark.slow
class TestMacroGPOFarAhead(PolicyContract):
    policy = MacroGPO
    options = {"horizon": 3, "samples": 4, "sampling": "iid", "exploration": 0.5, "gp": GP(Matern(2.5), noise=1e-3)}


class TestMacroGPOAnytime(PolicyContract):
    policy = MacroGPO
    options = {"planner": "anytime", "horizon": 3, "samples": 6, "iterations": 5}


class FederatedContract(PolicyContract):
    """Agents hear of the others on their way: of an agent before their second query, then of a coordinator."""

    policy = Agent
    options = {"initial": 2, "schedule": Decay(0.5, first=0.0), "draw_features": 128}

    def build(self, domain, **options):
        features = SharedFeatures(domain.encoded_dimension, 20, lengthscale=0.4, noise=0.01, seed=5)
        return super().build(domain, features=features, **options)

    def ask(self, policy):
        number = len(policy.queries)
        vectors = np.random.default_rng(number).standard_normal((policy.regions.count, 20))
        if number == 1:
            policy.receive(Message(7, 0, policy.shared.hash, vectors[0]))
        if number in (2, 4):
            policy.receive(Broadcast(number, policy.shared.hash, policy.regions.parts, vectors))
        return super().ask(policy)

    def wrapped(self, policy, **options):
        pytest.skip("messages go to an agent, not through what wraps it")


class TestAgent(FederatedContract):
    pass


class TestAgentAlone(PolicyContract):
    """Without messages: Thompson sampling, in another policy too."""

    policy = Agent
    options = {"initial": 2, "draw_features": 128}

    def build(self, domain, **options):
        features = SharedFeatures(domain.encoded_dimension, 20, lengthscale=0.4, noise=0.01, seed=5)
        return super().build(domain, features=features, **options)


class TestAgentInARegion(FederatedContract):
    options = {**FederatedContract.options, "regions": 2, "region": 0, "outputs": "rank", "reuse": "always"}
