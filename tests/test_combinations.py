"""What goes together, and what does not: combinations of families, each with the parts it is really made of."""

from __future__ import annotations

import itertools
import math
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from surefoot import (
    BOBOS,
    GP,
    GPLSE,
    GPUCB,
    RGPUCB,
    RMBOBOS,
    SE,
    TVGPUCB,
    Box,
    Candidates,
    Fidelity,
    Float,
    Int,
    LevelSet,
    MacroGPO,
    NotSupported,
    PendingQuery,
    RobustBatch,
    Space,
    StableOpt,
    ThompsonSampling,
    TruVaR,
    UnknownParameters,
    WeightedBox,
    optimize,
)
from surefoot.domain import Dives, Paths

EPOCHS = 20


# -- early stopping with earlier tasks, in one Optuna study ------------------------------------------------------------


def training(best, trained=None):
    """The loss after each epoch; the rate has its best value, and good runs begin no better than others."""

    def run(trial):
        import optuna

        rate = trial.suggest_float("rate", 1e-5, 1.0, log=True)
        end = 0.1 + 0.15 * math.log10(rate / best) ** 2
        for epoch in range(1, EPOCHS + 1):
            loss = end + (1.5 - min(end, 1.0)) * math.exp(-0.3 * epoch)
            trial.report(loss, epoch)
            if trained is not None:
                trained.append(trial.number)
            if trial.should_prune():
                raise optuna.TrialPruned
        return loss

    return run


@pytest.fixture(scope="module")
def last_year():
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(study_name="last year", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(training(0.01), n_trials=18)
    return study


class TestTransferAndStoppingInOneStudy:
    def tune(self, last_year, trials=9):
        import optuna

        from surefoot.bridge.optuna import PolicyPruner, SurefootSampler

        trained = []
        study = optuna.create_study(
            sampler=SurefootSampler(RMBOBOS, epochs=EPOCHS, transfer_from=[last_year], seed=0),
            pruner=PolicyPruner(),
        )
        study.enqueue_trial({"rate": 0.03})
        study.enqueue_trial({"rate": 0.01})
        study.enqueue_trial({"rate": 0.005})
        study.enqueue_trial({"rate": 1e-5})  # hopeless: its run must be given up, and must not spoil the belief
        study.optimize(training(0.02, trained), n_trials=trials)
        return study, trained

    def test_runs_are_given_up_and_earlier_tasks_are_weighed(self, last_year):
        import optuna

        study, trained = self.tune(last_year)
        assert study.trials[3].state == optuna.trial.TrialState.PRUNED
        assert trained.count(3) < EPOCHS
        policy = study.sampler.policy(study)
        assert isinstance(policy, RMBOBOS)
        assert [task.name for task in policy.tasks] == ["last year"]
        reports = policy.reports()  # the policy heard of every epoch, of runs that were given up too
        assert [len(reports[i]) for i in range(9)] == [trained.count(i) for i in range(9)]
        assert abs(math.log10(study.best_params["rate"] / 0.02)) < 0.15

    def test_the_first_choice_is_already_near(self, last_year):
        import optuna

        from surefoot.bridge.optuna import PolicyPruner, SurefootSampler

        study = optuna.create_study(
            sampler=SurefootSampler(RMBOBOS, epochs=EPOCHS, transfer_from=[last_year], seed=0),
            pruner=PolicyPruner(),
        )
        study.optimize(training(0.02), n_trials=1)
        assert abs(math.log10(study.trials[0].params["rate"] / 0.02)) < 1.0  # of an axis of five decades

    def test_a_robust_choice_as_a_sampler(self):
        """StableOpt takes Optuna's parameters by their names; its answer is the policy's, not the best trial."""
        optuna = pytest.importorskip("optuna")
        from surefoot.bridge.optuna import SurefootSampler

        def objective(trial):
            n = trial.suggest_int("n", 0, 20)
            return 3.0 if n == 4 else 2.0 - 0.05 * (n - 14) ** 2  # a spike beside a hill

        sampler = SurefootSampler(StableOpt, perturbation=WeightedBox({"n": 2}), gp=GP(SE(0.1), noise=1e-4), seed=0)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        study.optimize(objective, n_trials=18)
        answer = study.sampler.policy(study).recommend()
        assert abs(answer.params["n"] - 14) <= 1
        assert answer.lower <= 1.8


# -- a private release under other policies ----------------------------------------------------------------------------


class TestReleases:
    @pytest.fixture
    def parties(self):
        pytest.importorskip("opendp")
        from surefoot.private import Curator, GaussianRelease, Modeler

        rows = np.random.default_rng(0).uniform(0.0, 1.0, (150, 2))
        truth = np.exp(-6.0 * ((rows - [0.3, 0.7]) ** 2).sum(axis=1))

        def make(policy, asks=18, **options):
            mechanism = GaussianRelease(
                epsilon=10.0, delta=1e-5, bounds=[(0.0, 1.0)] * 2, radius=0.4, neighbor=0.02
            ).research(seed=1)
            value = {row.tobytes(): y for row, y in zip(rows, truth, strict=True)}
            curator = Curator(rows, lambda row: float(value[row.tobytes()]), mechanism, asks=asks)
            return curator, Modeler(curator.release(), policy, seed=0, **options), truth

        return make

    @pytest.mark.parametrize("policy", [TruVaR, ThompsonSampling, GPUCB])
    def test_other_policies_find_a_good_row(self, parties, policy):
        curator, modeler, truth = parties(policy)
        curator.close(modeler.run(curator.answer))
        assert curator.state == "closed"
        assert truth[curator.chosen] > np.quantile(truth, 0.9)

    def test_a_level_set_stays_with_the_modeler(self, parties):
        curator, modeler, truth = parties(TruVaR, asks=30, goal="level", threshold=0.5)
        close = modeler.run(curator.answer)
        assert close.index is None
        curator.close(close)
        found = modeler.recommend()
        assert isinstance(found, LevelSet)
        secret = truth[curator._Curator__order]  # rows are released in an order that only the curator knows
        assert found.above.sum() >= 10
        assert (secret[found.above] > 0.5).mean() > 0.9
        assert (secret[found.below] < 0.5).mean() > 0.9

    @pytest.mark.parametrize(
        ("policy", "options", "words"),
        [
            (TruVaR, {"fidelities": [Fidelity(1e-6, 3.0), Fidelity(0.1, 1.0)]}, "TruVaR chooses a fidelity"),
            (BOBOS, {"epochs": 9}, "BOBOS follows runs step by step"),
            (StableOpt, {"perturbation": UnknownParameters([0.0, 1.0])}, "beside unknown parameters"),
            (MacroGPO, {}, "works on Paths, not on Candidates"),
        ],
    )
    def test_what_an_answer_cannot_carry_is_refused(self, parties, policy, options, words):
        with pytest.raises(NotSupported, match=words):
            parties(policy, **options)


# -- robust batches under parallel workers -----------------------------------------------------------------------------


def hill(x):
    return float(-((x[0] - 0.7) ** 2) - (x[1] - 0.2) ** 2)


class TestParallelWorkers:
    def test_workers_that_vanish(self):
        """Threads ask and tell one policy, each call under one lock; every fourth run is lost."""
        policy = RobustBatch(Box.unit(2), tau=2, gp=GP(SE(0.4), noise=1e-4), pool=150, seed=0)
        lock, numbers = threading.Lock(), itertools.count()
        under_way, seen = 0, []

        def worker(_):
            nonlocal under_way
            while True:
                with lock:
                    if next(numbers) >= 28:
                        return
                    query = policy.ask()
                    under_way = len(policy.pending)
                    points = {tuple(other.x.tolist()) for other in policy.pending}
                    seen.append((under_way, len(points)))
                value = hill(query.x)
                with lock:
                    policy.cancel(query) if query.id % 4 == 3 else policy.tell(query, value)

        with ThreadPoolExecutor(5) as pool:
            list(pool.map(worker, range(5)))
        assert len(policy.queries) == 28
        assert len(policy.history) == 21
        assert not policy.pending
        assert all(count == different for count, different in seen)  # nobody measures what another is measuring
        assert np.abs(policy.recommend().x - [0.7, 0.2]).max() < 0.15

    def test_what_a_batch_keeps_when_its_workers_are_lost(self):
        """The places of lost queries are filled first, and the batch survives the next losses as it should."""
        candidates = Candidates(np.random.default_rng(0).random((60, 2)))
        policy = RobustBatch(candidates, tau=2, gp=GP(SE(0.3), noise=0.01), seed=0)
        policy.ask(6)
        before = policy.exposure()
        for id in before.removed:  # the two whose loss hurts most
            policy.cancel(id)
        again = policy.ask(2)
        assert len({query.index for query in [*policy.pending, *again]}) == 6
        assert len(policy.pending) == 6
        assert policy.exposure().value > 0.95 * before.value


# -- what has no meaning -----------------------------------------------------------------------------------------------


LINE = Candidates(np.linspace(0.0, 1.0, 9))


class TestNoMeaning:
    def test_reports_to_a_policy_that_follows_no_runs(self):
        policy = GPUCB(LINE, seed=0)
        query = policy.ask()
        with pytest.raises(NotSupported, match="GPUCB does not follow runs step by step; tell the final value"):
            policy.report(query, 1, 0.5)
        assert policy.pending == [query]

    def test_early_stopping_needs_the_length_of_a_run(self):
        with pytest.raises(TypeError, match="epochs"):
            BOBOS(LINE)

    def test_a_vehicle_is_at_one_place_at_a_time(self):
        points = np.stack(np.meshgrid(np.arange(3.0), np.arange(3.0)), axis=-1).reshape(-1, 2)
        policy = MacroGPO(Paths(points, Dives((3, 3), 1), start=4), horizon=1, gp=GP(SE(1.0), noise=0.01), seed=0)
        policy.ask()
        with pytest.raises(PendingQuery, match="MacroGPO chooses one point at a time"):
            policy.ask()
        with pytest.raises(NotSupported, match="RobustBatch works on Box, Candidates, Space, not on Paths"):
            RobustBatch(Paths(points, Dives((3, 3), 1), start=4), tau=1)

    def test_a_level_set_is_not_a_point(self):
        result = optimize(lambda x: x[0], LINE, 5, policy=GPLSE, threshold=0.5, seed=0)
        assert isinstance(result.recommendation, LevelSet)
        for name in ("x", "params", "value"):
            with pytest.raises(NotSupported, match="level set, not a point"):
                getattr(result, name)

    @pytest.mark.parametrize("policy", [GPUCB, ThompsonSampling, TruVaR])
    def test_the_time_tells_nothing_to_a_policy_without_a_clock(self, policy):
        made = policy(LINE, seed=0)
        with pytest.raises(NotSupported, match=rf"{policy.__name__}.ask\(\) takes no context, not 'time'"):
            made.ask(time=3.0)
        assert not made.events

    @pytest.mark.parametrize("policy", [TVGPUCB, RGPUCB])
    def test_time_does_not_run_backwards(self, policy):
        made = policy(LINE, seed=0, **({"forgetting": 0.1} if policy is TVGPUCB else {"block": 5}))
        made.ask(time=4.0)
        with pytest.raises(ValueError, match="time"):
            made.ask(time=3.0)

    def test_unknown_parameters_beside_a_space(self):
        space = Space(speed=Float(0.0, 1.0), teeth=Int(8, 40))
        with pytest.raises(NotSupported, match="the space's own"):
            StableOpt(space, perturbation=UnknownParameters([0.0, 1.0]))

    def test_fidelities_in_a_trial(self):
        optuna = pytest.importorskip("optuna")
        from surefoot.bridge.optuna import SurefootSampler

        two = [Fidelity(1e-6, 3.0), Fidelity(0.1, 1.0)]
        study = optuna.create_study(sampler=SurefootSampler(TruVaR, fidelities=two, seed=0))
        with pytest.raises(NotSupported, match="TruVaR chooses fidelities"):
            study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=2)
        plain = optuna.create_study(sampler=SurefootSampler(TruVaR, seed=0, points=64))
        plain.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=2)  # without any it is welcome
        assert len(plain.trials) == 2

    def test_a_pruner_without_its_policy(self):
        optuna = pytest.importorskip("optuna")
        from surefoot.bridge.optuna import PolicyPruner, SurefootSampler

        def objective(trial):
            x = trial.suggest_float("x", 0.0, 1.0)
            trial.report(x, 1)
            trial.should_prune()
            return x

        for sampler, words in (
            (optuna.samplers.RandomSampler(), "this study has RandomSampler"),
            (SurefootSampler(GPUCB, seed=0), "GPUCB does not follow runs: take BOBOS"),
        ):
            study = optuna.create_study(sampler=sampler, pruner=PolicyPruner())
            with pytest.raises(NotSupported, match=words):
                study.optimize(objective, n_trials=2)
