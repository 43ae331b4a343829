"""SurefootSampler: it says what the policy says, whichever process asks, and whatever became of the trials."""

from __future__ import annotations

import math
import pickle
import warnings

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

from surefoot import BOBOS, GPUCB, ExpectedImprovement, RandomSearch, SobolSearch, ThompsonSampling
from surefoot.bridge.optuna import SurefootSampler
from surefoot.bridge.optuna.history import ASKED, events
from surefoot.bridge.optuna.space import Group
from surefoot.loop.policy import Proposal

optuna.logging.set_verbosity(optuna.logging.WARNING)
X, K = FloatDistribution(0.0, 1.0), CategoricalDistribution(["a", "b"])


def bowl(trial):
    x, y = trial.suggest_float("x", -1.0, 1.0), trial.suggest_int("n", 0, 8)
    return (x - 0.3) ** 2 + 0.05 * (y - 6) ** 2


def run(sampler, objective=bowl, n=8, **kwargs):
    study = optuna.create_study(sampler=sampler, **kwargs)
    study.optimize(objective, n_trials=n)
    return study


def asked(study):
    return [trial.params for trial in study.trials]


def finished(value=None, state=TrialState.COMPLETE, intermediate=None, **params):
    known = {"x": X, "k": K}
    return create_trial(
        params=params,
        distributions={name: known[name] for name in params},
        value=value,
        state=state,
        intermediate_values=intermediate or {},
    )


class TestSameAsThePolicy:
    def test_directions_mirror_each_other(self):
        down = run(SurefootSampler(seed=3))
        up = run(SurefootSampler(seed=3), lambda trial: -bowl(trial), direction="maximize")
        assert asked(down) == asked(up)

    def test_the_policy_rebuilt_by_hand_asks_the_same(self):
        study = run(SurefootSampler(GPUCB, seed=5), n=7)
        group = Group(study.trials[0].distributions)
        policy = GPUCB(group.domain, seed=group.seed(5))
        for trial in study.trials[1:]:  # the first one shows what the parameters are
            policy = GPUCB(group.domain, direction="minimize", seed=group.seed(5))
            policy.replay(events(group, study.trials[: trial.number], sign=-1.0))
            assert group.values(policy.ask().x) == trial.params

    @pytest.mark.parametrize("policy", [None, ThompsonSampling, SobolSearch])
    def test_what_a_sampler_keeps_changes_nothing(self, policy):
        class Fresh(SurefootSampler):
            """A new sampler for every trial, as if each ran in a process of its own."""

            def sample_relative(self, study, trial, search_space):
                return SurefootSampler(policy, seed=7).sample_relative(study, trial, search_space)

        def sometimes_bad(trial):
            value = bowl(trial)
            return math.nan if trial.number == 4 else value

        kept, fresh = (run(sampler, sometimes_bad) for sampler in (SurefootSampler(policy, seed=7), Fresh(seed=7)))
        assert asked(kept) == asked(fresh)

    def test_processes_agree_without_a_seed(self):
        study = run(SurefootSampler(), n=5)
        trial = study.ask()
        frozen = study.trials[trial.number]
        first, second = (
            sampler.sample_relative(study, frozen, sampler.infer_relative_search_space(study, frozen))
            for sampler in (SurefootSampler(), SurefootSampler())
        )
        assert first == second
        assert asked(run(SurefootSampler(), n=3)) != asked(run(SurefootSampler(), n=3))

    def test_the_policy_can_be_looked_at(self):
        study = run(SurefootSampler(seed=0))
        policy = study.sampler.policy(study)
        assert isinstance(policy, ExpectedImprovement)
        answer = policy.recommend().negated()
        assert answer.mean == pytest.approx(study.best_value, abs=0.1)
        with pytest.raises(ValueError, match="single out one of the groups"):
            study.sampler.policy(study, ["z"])

    def test_it_finds_the_minimum_better_than_chance(self):
        def gap(sampler):
            return run(sampler, n=15).best_value

        ours = [gap(SurefootSampler(seed=s)) for s in range(3)]
        chance = [gap(optuna.samplers.RandomSampler(seed=s)) for s in range(3)]
        assert all(a < 0.5 * b for a, b in zip(ours, chance, strict=True))


class TestParallel:
    def ask_all(self, order, seed=2, policy=None):
        """Four workers begin a trial at the same moment and choose in some order."""
        study = run(SurefootSampler(policy, seed=seed), n=6)
        trials = [study.ask() for _ in range(4)]
        for i in order:
            study.sampler = SurefootSampler(policy, seed=seed)
            bowl(trials[i])
        return [trial.params for trial in trials]

    def test_workers_that_choose_at_once_choose_different_points(self):
        in_turn = self.ask_all([0, 1, 2, 3])
        assert len({tuple(params.values()) for params in in_turn}) == 4
        reverse = self.ask_all([3, 2, 1, 0])
        assert len({tuple(params.values()) for params in reverse}) == 4
        # The last one asked for the three before it first; nobody had to wait.
        assert reverse[3] == in_turn[3]

    def test_a_running_trial_is_pending_before_its_parameters_are_stored(self):
        study = run(SurefootSampler(seed=2), n=6)
        one, two = study.ask(), study.ask()
        one.relative_params  # noqa: B018 - chosen, but nothing suggested yet
        assert study.trials[one.number].params == {}
        group = Group(study.trials[0].distributions)
        told = events(group, study.trials[:-1], sign=-1.0)
        assert told[-1] == {"event": "asked", "id": 6, "x": study.trials[6].system_attrs[ASKED][0]["x"]}
        bowl(two)
        bowl(one)
        assert one.params != two.params

    def test_a_choice_that_another_worker_has_made_is_made_again(self):
        study = run(SurefootSampler(seed=2), n=6)
        one, two = study.ask(), study.ask()
        bowl(one)
        theirs = study.trials[one.number].system_attrs[ASKED][0]["x"]
        calls = []

        class Late(SurefootSampler):
            """Knows nothing of the other worker when it chooses first: a result came in between."""

            def _ask(self, view, trial, group):
                calls.append(trial.number)
                x, note = super()._ask(view, trial, group)
                return (np.add(theirs, [0.0, 1e-6]), {}) if len(calls) == 1 else (x, note)

        study.sampler = Late(seed=2)
        bowl(two)
        assert len(calls) == 2
        assert max(abs(two.params["x"] - one.params["x"]) / 2, abs(two.params["n"] - one.params["n"]) / 8) > 0.01
        stored = study.trials[two.number].system_attrs[ASKED][0]["x"]
        assert stored == [two.params["n"], two.params["x"]]

    def test_more_workers_than_points(self):
        study = optuna.create_study(sampler=SurefootSampler(seed=0))
        study.add_trial(finished(1.0, k="a"))
        values = [study.ask({"k": K}).params["k"] for _ in range(5)]
        assert set(values) == {"a", "b"}

    def test_threads(self):
        study = optuna.create_study(sampler=SurefootSampler(seed=0))
        study.optimize(bowl, n_trials=12, n_jobs=3)
        assert len({tuple(params.values()) for params in asked(study)}) == 12


class TestWhatBecameOfTrials:
    def test_failed_choices_are_not_proposed_again(self):
        def objective(trial):
            value = trial.suggest_categorical("value", ["u", "v", "w", "x", "y"])
            if value in "vx":
                raise RuntimeError
            return float("uvwxy".index(value))

        study = optuna.create_study(sampler=SurefootSampler(seed=1))
        study.optimize(objective, n_trials=14, catch=(RuntimeError,))
        failed = [t.params["value"] for t in study.trials if t.state == TrialState.FAIL]
        assert len(failed) == len(set(failed))

    def test_a_study_that_only_failed_so_far_still_spreads_out(self):
        def objective(trial):
            trial.suggest_float("x", 0.0, 1.0)
            raise RuntimeError

        study = optuna.create_study(sampler=SurefootSampler(seed=1))
        study.optimize(objective, n_trials=6, catch=(RuntimeError,))
        points = sorted(t.params["x"] for t in study.trials)
        assert np.diff(points).min() > 1e-3
        assert np.diff([0.0, *points, 1.0]).max() < 0.5

    def test_events(self):
        trials = [
            finished(3.0, x=0.1),
            finished(math.inf, x=0.2),
            finished(state=TrialState.FAIL, x=0.3),
            finished(state=TrialState.RUNNING, x=0.4),
            finished(5.0, k="a"),  # another group
            finished(state=TrialState.WAITING),
        ]
        for number, trial in enumerate(trials):
            trial.number = number
        group = Group({"x": X})
        told = [e for e in events(group, trials, sign=-1.0) if e["event"] == "told"]
        assert told == [
            {"event": "told", "id": 0, "value": 3.0},
            {"event": "told", "id": 1, "value": None},
            {"event": "told", "id": 2, "value": None},
        ]
        policy = RandomSearch(group.domain, seed=0)
        policy.replay(events(group, trials, sign=-1.0))
        assert [query.x.tolist() for query in policy.pending] == [[0.4]]

    def test_a_failed_run_that_was_made_again_has_not_failed(self):
        trials = [finished(state=TrialState.FAIL, x=0.3), finished(2.0, x=0.3)]
        for number, trial in enumerate(trials):
            trial.number = number
        kinds = [(e["event"], e.get("value")) for e in events(Group({"x": X}), trials, sign=1.0)]
        assert kinds == [("asked", None), ("cancelled", None), ("asked", None), ("told", 2.0)]

    @pytest.mark.parametrize(
        ("pruned", "value"), [("value", [4.0, 1.0, 4.0, None]), ("failed", [4.0, None, None, None])]
    )
    def test_pruned_trials(self, pruned, value):
        trials = [
            finished(4.0, x=0.1),
            finished(1.0, TrialState.PRUNED, {1: 1.0}, x=0.2),
            finished(1e9, TrialState.PRUNED, {1: 1e9}, x=0.3),  # an early loss, far worse than any final one
            finished(None, TrialState.PRUNED, x=0.4),  # nothing was reported
        ]
        for number, trial in enumerate(trials):
            trial.number = number
        found = events(Group({"x": X}), trials, sign=-1.0, pruned=pruned)
        assert [e["value"] for e in found if e["event"] == "told"] == value

    def test_pruned_trials_can_be_ignored(self):
        trial = finished(1.0, TrialState.PRUNED, {1: 1.0}, x=0.2)
        trial.number = 0
        assert events(Group({"x": X}), [trial], sign=1.0, pruned="ignore") == []

    def test_a_policy_that_follows_runs_hears_of_every_epoch(self):
        def objective(trial):
            x = trial.suggest_float("x", 0.0, 1.0)
            for step in range(10):  # counted from 0
                trial.report(x + 0.5**step, step)
                if trial.number == 2 and step == 4:
                    raise optuna.TrialPruned
            return x + 0.5**9

        study = run(SurefootSampler(BOBOS, epochs=10, seed=0), objective, n=5)
        policy = study.sampler.policy(study)
        reports = policy.reports()
        assert [len(reports[i]) for i in range(5)] == [10, 10, 5, 10, 10]
        assert reports[0][1] == study.trials[0].params["x"] + 1.0
        assert policy.history[2].value == study.trials[2].value  # as it is: the belief knows the epoch

    def test_notes_come_back(self):
        class Diary(RandomSearch):
            """Writes down the number of each query, and refuses to go on when a page is missing."""

            def _choose(self, step, context):
                pages = [query.note.get("page") for query in self._queries if "initial" not in query.note]
                if pages != list(range(1, step)):
                    raise RuntimeError(f"pages are missing: {pages}")
                return Proposal(super()._choose(step, context).x, note={"page": step})

        study = optuna.create_study(sampler=SurefootSampler(Diary, seed=0))
        for _ in range(4):
            study.sampler = SurefootSampler(Diary, seed=0)
            study.optimize(bowl, n_trials=1)
        assert study.trials[3].system_attrs[ASKED][0]["note"] == {"page": 3}

    def test_enqueued_trials_count(self):
        study = optuna.create_study(sampler=SurefootSampler(seed=0))
        study.enqueue_trial({"x": 0.3, "n": 6})
        study.optimize(bowl, n_trials=4)
        assert study.best_params == {"x": 0.3, "n": 6}
        assert study.sampler.policy(study).history[0].value == 0.0

    def test_a_range_that_changes(self):
        study = optuna.create_study(sampler=SurefootSampler(seed=0))
        study.optimize(lambda trial: trial.suggest_float("x", 0.0, 10.0), n_trials=5)
        study.optimize(lambda trial: -trial.suggest_float("x", 0.0, 3.0), n_trials=6)
        policy = study.sampler.policy(study)
        assert policy.domain.parameters["x"].high == 3.0
        assert all(o.x[0] <= 3.0 for o in policy.history)


class TestSpaces:
    def test_conditional_branches_are_learnt(self):
        def objective(trial):
            kind = trial.suggest_categorical("kind", ["svm", "forest", "none"])
            if kind == "svm":
                return 1.0 + abs(math.log10(trial.suggest_float("C", 1e-3, 1e3, log=True)) - 1.0)
            if kind == "forest":
                depth, width = trial.suggest_int("depth", 1, 12), trial.suggest_float("width", 0.0, 1.0, step=0.05)
                return 0.1 * abs(depth - 5) + abs(width - 0.6)
            return 5.0

        study = run(SurefootSampler(seed=0), objective, n=26)
        assert study.best_params["kind"] == "forest"
        assert study.best_value < 0.25
        assert study.sampler.policy(study, ["depth"]).domain.names == ["depth", "width"]
        with pytest.raises(ValueError, match="single out"):
            study.sampler.policy(study)

    def test_steps_are_kept(self):
        def objective(trial):
            x, n = trial.suggest_float("x", -1.0, 1.0, step=0.2), trial.suggest_int("n", 4, 64, step=4)
            return abs(x - 0.4) + abs(n - 24) / 60

        study = run(SurefootSampler(seed=0), objective, n=20)
        assert study.best_params == {"x": 0.4, "n": 24}

    def test_hyperband_splits_a_study(self):
        def objective(trial):
            x = trial.suggest_float("x", 0.0, 1.0)
            for step in range(9):
                trial.report((x - 0.3) ** 2 + 0.5**step, step)
                if trial.should_prune():
                    raise optuna.TrialPruned
            return (x - 0.3) ** 2

        study = run(SurefootSampler(seed=0), objective, n=12, pruner=optuna.pruners.HyperbandPruner(max_resource=9))
        assert len(study.trials) == 12

    def test_partial_fixed_parameters(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            fixed = optuna.samplers.PartialFixedSampler({"n": 6}, SurefootSampler(seed=0))
        study = run(fixed, n=8)
        assert {trial.params["n"] for trial in study.trials} == {6}
        assert study.best_value < 0.01


class TestRefusals:
    def test_constraints_are_ignored_with_one_warning(self):
        def objective(trial):
            x = trial.suggest_float("x", 0.0, 1.0)
            trial.set_constraint("c", x - 0.5)
            return x

        study = optuna.create_study(sampler=SurefootSampler(seed=0))
        with pytest.warns(UserWarning, match="ignores the constraints") as caught:
            study.optimize(objective, n_trials=4)
        assert sum("constraints" in str(w.message) for w in caught) == 1

    def test_several_objectives(self):
        study = optuna.create_study(directions=["minimize", "maximize"], sampler=SurefootSampler())
        with pytest.raises(ValueError, match="one objective, and this study has 2"):
            study.optimize(lambda trial: (trial.suggest_float("x", 0, 1), 0.0), n_trials=1)

    def test_bad_arguments(self):
        with pytest.raises(TypeError, match="policy class"):
            SurefootSampler("gp")
        with pytest.raises(ValueError, match="seed must be"):
            SurefootSampler(seed=-1)
        with pytest.raises(ValueError, match="pruned must be one of"):
            SurefootSampler(pruned="maybe")
        with pytest.raises(ValueError, match="storage holds every event"):
            SurefootSampler(journal="run.jsonl")
        with pytest.raises(TypeError, match="list of studies"):
            SurefootSampler(transfer_from=optuna.create_study())
        with pytest.raises(TypeError, match="list of studies"):
            SurefootSampler(transfer_from=["study"])
        with pytest.raises(TypeError, match="must return a policy"):
            run(SurefootSampler(lambda domain, seed: None), n=2)

    def test_samplers_can_be_pickled(self):
        study = run(SurefootSampler(seed=4), n=4)
        again = pickle.loads(pickle.dumps(study.sampler))
        trial = study.ask()
        space = again.infer_relative_search_space(study, study.trials[-1])
        assert set(space) == {"x", "n"}
        assert again.sample_relative(study, study.trials[-1], space) == trial.relative_params

    def test_an_independent_sampler_takes_over_what_is_unknown(self):
        own = optuna.samplers.RandomSampler(seed=0)
        first = run(SurefootSampler(independent_sampler=own, seed=1), n=1)
        assert asked(first) == asked(run(optuna.samplers.RandomSampler(seed=0), n=1))
        first.sampler.reseed_rng()
        assert asked(run(first.sampler, n=1)) != asked(run(optuna.samplers.RandomSampler(seed=0), n=2))[1:]


def test_integer_distributions_from_a_float_axis():
    study = optuna.create_study(sampler=SurefootSampler(seed=0))
    study.optimize(lambda trial: float(trial.suggest_int("seed", 0, 2**50)) / 2**50, n_trials=5)
    assert all(isinstance(trial.params["seed"], int) for trial in study.trials)
    assert isinstance(study.trials[0].distributions["seed"], IntDistribution)
