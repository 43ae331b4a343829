"""The Ray Tune bridge: searcher and scheduler alone, then on a real local cluster of two workers (`make test-ray`)."""

from __future__ import annotations

import json
import math
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("ray.tune", reason="Ray Tune is not installed here; `make test-ray` runs these tests")

import ray
import ray_experiment as experiment
from pyarrow.fs import LocalFileSystem
from ray import tune
from ray.tune.experiment import Trial
from ray.tune.schedulers import TrialScheduler
from ray.tune.search import ConcurrencyLimiter, Searcher

from surefoot import BOBOS, GPUCB, TVGPUCB, Choice, Float, Int, NotSupported, RandomSearch, Space
from surefoot.bridge.ray_tune import SurefootSearch, SurefootStopping
from surefoot.bridge.ray_tune.space import TuneSpace, axis_of, searched
from surefoot.loop.events import timeless

ROOT = Path(__file__).resolve().parents[2]
SPACE = {"x": tune.uniform(0.0, 1.0), "data": "digits"}
NAN = math.nan


# -- spaces -----------------------------------------------------------------------------------------------------------

DISTRIBUTIONS = {
    "uniform": (tune.uniform(-1.0, 2.0), Float(-1.0, 2.0)),
    "loguniform": (tune.loguniform(1e-4, 1e-1), Float(1e-4, 1e-1, log=True)),
    "quniform": (tune.quniform(-0.5, 1.0, 0.25), Int(-2, 4)),
    "quniform-1": (tune.quniform(0.0, 3.0, 1), Int(0, 3)),
    "qloguniform": (tune.qloguniform(0.25, 2.0, 0.25), Int(1, 8, log=True)),
    "randint": (tune.randint(1, 5), Int(1, 4)),
    "lograndint": (tune.lograndint(1, 9), Int(1, 8, log=True)),
    "qrandint": (tune.qrandint(3, 17, 4), Int(1, 4)),
    "qrandint-1": (tune.qrandint(0, 5, 1), Int(0, 4)),
    "qlograndint": (tune.qlograndint(16, 128, 16), Int(1, 8, log=True)),
    "choice": (tune.choice(["relu", "tanh"]), Choice(["relu", "tanh"])),
    "choice of lists": (tune.choice([[8], [8, 8]]), Choice([0, 1])),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_an_axis_has_exactly_the_values_that_tune_draws(name):
    domain, expected = DISTRIBUTIONS[name]
    axis = axis_of(domain, name)
    assert axis.parameter == expected
    drawn = [domain.sample(random_state=seed) for seed in range(200)]
    numbers = np.array([axis.number(value) for value in drawn])
    assert expected.contains(numbers).all()
    ours = [axis.value(u) for u in expected.spread(np.linspace(0.0, 1.0, 200))]
    assert {type(value) for value in ours} == {type(value) for value in drawn}
    if expected.size is None:
        assert min(ours) == pytest.approx(domain.lower)
        assert max(ours) == pytest.approx(domain.upper)
    else:
        assert sorted({str(value) for value in ours}) == sorted({_printed(value) for value in drawn})


def _printed(value):
    return str(round(value, 12) + 0.0 if isinstance(value, float) else value)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"a": tune.grid_search([1, 2])}, "a: a grid search tries every value"),
        ({"net": {"a": tune.randn()}}, "net/a: a policy searches between bounds"),
        ({"a": tune.qrandn(0.0, 1.0, 0.5)}, "a: a policy searches between bounds"),
        ({"a": tune.sample_from(lambda config: 1)}, "tune.sample_from"),
        ({"a": tune.choice([tune.uniform(0, 1), 2])}, "a: a choice among distributions"),
        ({"a": tune.choice([])}, "a: has no values"),
        ({"a": 1, "b": {"c": [2]}}, "nothing to search"),
        ({"a/b": tune.uniform(0, 1), "a": {"b": tune.uniform(0, 1)}}, "same name"),
    ],
)
def test_what_cannot_be_searched_is_refused_with_a_sentence(config, message):
    with pytest.raises(ValueError, match=message):
        TuneSpace(config)


def test_nested_configurations_keep_their_shape():
    config = {
        "net": {"depth": tune.randint(1, 5), "widths": [8, tune.choice([16, 32])], "name": "mlp"},
        "rate": tune.loguniform(1e-4, 1.0),
        "data": {"set": "digits"},
    }
    space = TuneSpace(config)
    assert space.axes.domain.names == ["net/depth", "net/widths/1", "rate"]
    chosen = space.config([2.0, 1.0, 0.01])
    assert chosen == {"net": {"depth": 2, "widths": [8, 32]}, "rate": 0.01}
    assert space.point(chosen).tolist() == [2.0, 1.0, 0.01]
    assert space.point({"net/depth": 2, "net/widths/1": 32, "rate": 0.01}).tolist() == [2.0, 1.0, 0.01]
    with pytest.raises(ValueError, match="'rate' is missing"):
        space.point({"net": {"depth": 2, "widths": [8, 32]}})
    with pytest.raises(ValueError, match="net/depth = 9 is outside"):
        space.point({"net/depth": 9, "net/widths/1": 32, "rate": 0.01})
    assert [path for path, _ in searched(config)] == [("net", "depth"), ("net", "widths", 1), ("rate",)]


# -- the searcher -----------------------------------------------------------------------------------------------------


def search(policy=RandomSearch, config=None, *, mode="min", **options):
    searcher = SurefootSearch(policy=policy, seed=3, **options)
    assert searcher.set_search_properties("loss", mode, SPACE if config is None else config)
    return searcher


def test_the_searcher_asks_what_its_policy_asks_and_minimizes():
    policy = GPUCB(Space(x=Float(0.0, 1.0)), direction="minimize", seed=3)
    searcher = search(GPUCB)
    for i in range(6):
        query = policy.ask()
        assert searcher.suggest(str(i)) == {"x": query.params["x"]}
        policy.tell(query, (query.params["x"] - 0.3) ** 2)
        searcher.on_trial_complete(str(i), {"loss": (query.params["x"] - 0.3) ** 2, "other": "text"})
    assert searcher.policy.config() == policy.config()
    assert timeless(searcher.policy.events) == timeless(policy.events)


@pytest.mark.parametrize(
    ("result", "error"),
    [({"loss": NAN}, False), ({"loss": math.inf}, False), ({}, False), ({"loss": "bad"}, False), (None, True)],
)
def test_a_run_without_a_number_has_failed(result, error):
    searcher = search()
    searcher.suggest("a")
    searcher.on_trial_complete("a", result, error=error)
    assert [observation.failed for observation in searcher.policy.history] == [True]


def test_a_trial_that_never_ran_is_forgotten():
    searcher = search()
    searcher.suggest("a")
    searcher.on_trial_complete("a")
    assert not searcher.policy.pending
    assert not searcher.policy.history


def test_a_failed_trial_that_is_run_again_is_learnt_from():
    searcher = search()
    x = searcher.suggest("a")["x"]
    searcher.on_trial_complete("a", error=True)
    searcher.on_trial_complete("a", {"loss": 2.0})  # resumed under its own name
    searcher.on_trial_complete("b", {"loss": 3.0, "config/x": x})  # restarted under another one
    searcher.on_trial_complete("c", {"loss": 3.0, "config/x": 7.0})  # outside of the space: says nothing
    assert [(o.id, o.value) for o in searcher.policy.history] == [(0, None), (None, 2.0), (None, 3.0)]


def test_sequential_policies_and_finite_spaces_make_tune_wait():
    class Sequential(RandomSearch):
        """One point at a time."""

        parallel = False

    searcher = search(Sequential)
    assert isinstance(searcher.suggest("a"), dict)
    assert searcher.suggest("b") is None
    searcher.on_trial_complete("a", {"loss": 1.0})
    assert isinstance(searcher.suggest("b"), dict)
    finite = search(RandomSearch, {"x": tune.choice(["u", "v"])}, repeats=False)
    assert {finite.suggest("a")["x"], finite.suggest("b")["x"]} == {"u", "v"}
    assert finite.suggest("c") is None
    finite.on_trial_complete("a", {"loss": 1.0})
    finite.on_trial_complete("b", {"loss": 1.0})
    assert finite.suggest("c") == Searcher.FINISHED


def test_first_points_and_points_from_elsewhere():
    early = SurefootSearch(policy=RandomSearch, points_to_evaluate=[{"x": 0.25}], seed=0)
    early.add_evaluated_point({"x": 0.5, "data": "other"}, 2.0)
    early.set_search_properties("loss", "min", SPACE)
    early.add_evaluated_point({"x": 0.75}, 0.0, error=True)
    assert early.suggest("a") == {"x": 0.25}
    assert early.suggest("a") == {"x": 0.25}  # the same trial, the same point
    assert [query.x.tolist() for query in early.policy.pending] == [[0.25]]
    assert [o.value for o in early.policy.history] == [2.0, None]
    with pytest.raises(ValueError, match="x = 2 is outside"):
        early.add_evaluated_point({"x": 2}, 1.0)


def test_first_points_have_their_time_where_a_policy_has_a_clock():
    searcher = search(TVGPUCB, forgetting=0.1, points_to_evaluate=[{"x": 0.25}, {"x": 0.75}])
    for trial in "abcde":
        searcher.suggest(trial)
        searcher.on_trial_complete(trial, {"loss": 1e200 if trial == "c" else 1.0})
    assert [query.time for query in searcher.policy.queries] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert [o.failed for o in searcher.policy.history] == [False, False, True, False, False]  # 1e200 is no measurement


def test_policies_that_follow_runs_hear_of_every_epoch():
    searcher = search(BOBOS, epochs=5)
    searcher.suggest("a")
    for epoch in range(1, 5):
        searcher.on_trial_result("a", {"loss": 1.0 / epoch, "training_iteration": epoch})
    searcher.on_trial_result("a", {"loss": 7.0, "training_iteration": 2})  # it was restored and began again
    searcher.on_trial_result("a", {"training_iteration": 5})
    searcher.on_trial_complete("a", {"loss": 0.1, "training_iteration": 5})
    assert searcher.policy.reports() == {0: {1: 1.0, 2: 0.5, 3: 1.0 / 3.0, 4: 0.25, 5: 0.1}}
    assert searcher.policy.history[0].value == 0.1
    searcher.add_evaluated_point({"x": 0.5}, 0.4, pruned=True, intermediate_values=[0.9, 0.4])
    searcher.add_evaluated_point({"x": 0.6}, 0.4, pruned=True)
    assert searcher.policy.reports()[1] == {1: 0.9, 2: 0.4}
    assert searcher.policy.length(1) == 2
    assert len(searcher.policy.history) == 2


@pytest.mark.parametrize("policy", [RandomSearch, GPUCB, BOBOS])
def test_saved_and_restored_it_goes_on_as_if_nothing_had_happened(policy, tmp_path):
    options = {"epochs": 4} if policy is BOBOS else {}
    searcher = search(policy, points_to_evaluate=[{"x": 0.9}], **options)

    def run(searcher, trial, epochs=4):
        x = searcher.suggest(trial)["x"]
        for epoch in range(1, epochs + 1):
            searcher.on_trial_result(trial, {"loss": x / epoch, "training_iteration": epoch})
        if epochs == 4:
            searcher.on_trial_complete(trial, {"loss": x / 4, "training_iteration": 4})
        return x

    for trial in "abcde":
        run(searcher, trial)
    run(searcher, "f", epochs=2)
    searcher.save_to_dir(str(tmp_path), "session")
    (path,) = tmp_path.iterdir()
    text = path.read_text()
    assert json.loads(text)["trials"] == {"a": 0, "b": 1, "c": 2, "d": 3, "e": 4, "f": 5}
    assert "NaN" not in text
    before, after = search(policy, points_to_evaluate=[{"x": 0.9}], **options), SurefootSearch(policy=policy, **options)
    before.restore(path)  # the space is known
    after.restore_from_dir(str(tmp_path))  # it will be
    after.set_search_properties(None, None, SPACE)
    thawed = pickle.loads(pickle.dumps(searcher))
    for one in (searcher, before, after, thawed):
        one.on_trial_complete("f", {"loss": 0.2, "training_iteration": 3})
    assert len({run(one, "g") for one in (searcher, before, after, thawed)}) == 1
    assert timeless(before.policy.events) == timeless(after.policy.events) == timeless(searcher.policy.events)


def test_a_state_of_other_options_is_refused(tmp_path):
    searcher = search(RandomSearch)
    searcher.save(tmp_path / "state.json")
    with pytest.raises(ValueError, match="was a RandomSearch with other options"):
        search(GPUCB).restore(tmp_path / "state.json")
    with pytest.raises(ValueError, match="was a RandomSearch with other options"):
        search(RandomSearch, {"x": tune.uniform(0.0, 2.0)}).restore(tmp_path / "state.json")
    with pytest.raises(ValueError, match="no schema"):
        search().set_state({"policy": {}})
    with pytest.raises(ValueError, match="not of a SurefootSearch"):
        search().set_state({"schema": 1, "searcher": "Other"})


def test_bad_arguments():
    with pytest.raises(ValueError, match="one metric, got"):
        SurefootSearch(metric=["a", "b"], mode=["min", "max"])
    with pytest.raises(ValueError, match="mode must be 'min' or 'max', got 'maximize'"):
        SurefootSearch(metric="a", mode="maximize")
    with pytest.raises(TypeError, match="policy must be"):
        SurefootSearch(policy=3)
    with pytest.raises(ValueError, match="keeps no journal"):
        SurefootSearch(journal="here.jsonl")
    with pytest.raises(TypeError, match="must return a policy"):
        search(lambda domain, seed: domain)
    with pytest.raises(RuntimeError, match="no space yet"):
        SurefootSearch(metric="a", mode="min").suggest("a")
    with pytest.raises(RuntimeError, match="what is better"):
        SurefootSearch(SPACE).suggest("a")

    class Choosy(RandomSearch):
        """Chooses how long to run."""

        fidelities = True

    with pytest.raises(NotSupported, match="Choosy chooses fidelities"):
        search(Choosy)
    given = SurefootSearch(Space({"net/x": Float(0.0, 1.0)}), metric="loss", mode="min")
    assert not given.set_search_properties(None, None, SPACE)
    assert given.set_search_properties(None, None, {"data": "digits"})
    assert list(given.suggest("a")["net"]) == ["x"]


@pytest.mark.parametrize("batch", [False, True])
def test_concurrency_limiter(batch):
    limited = ConcurrencyLimiter(search(), max_concurrent=2, batch=batch)
    assert isinstance(limited.suggest("a"), dict)
    assert isinstance(limited.suggest("b"), dict)
    assert limited.suggest("c") is None
    limited.on_trial_complete("a", {"loss": 1.0})
    assert len(limited.searcher.policy.history) == (0 if batch else 1)
    assert isinstance(limited.suggest("c"), dict) != batch
    limited.on_trial_complete("b", {"loss": 1.0})
    assert len(limited.searcher.policy.history) == 2


# -- the scheduler ----------------------------------------------------------------------------------------------------


def fake(number, status=Trial.RUNNING, last=None):
    """What the scheduler looks at in a trial."""
    tag = f"{number + 1}_x=0.5"
    return SimpleNamespace(trial_id=f"t{number}", experiment_tag=tag, status=status, last_result=last, storage=None)


def follow(scheduler, number, curve, epochs=20):
    """Run a trial until it is stopped; return after how many epochs."""
    trial = fake(number)
    scheduler.on_trial_add(None, trial)
    for epoch, value in enumerate(curve, start=1):
        result = {"loss": value, "training_iteration": epoch}
        if scheduler.on_trial_result(None, trial, result) == TrialScheduler.STOP or epoch == len(curve):
            scheduler.on_trial_complete(None, trial, result)
            return epoch
    raise AssertionError


def losses(end, epochs=20):
    return end + (1.0 - end) * 0.6 ** np.arange(1, epochs + 1)


def test_hopeless_trials_are_stopped_and_good_ones_are_not():
    scheduler = SurefootStopping(epochs=20, metric="loss", mode="min", bounds=(0.0, 1.0), complete=3, seed=0)
    lengths = [follow(scheduler, i, losses(end)) for i, end in enumerate([0.3, 0.2, 0.25, 0.8, 0.9, 0.1])]
    assert lengths[:3] == [20, 20, 20]
    assert all(3 < length < 12 for length in lengths[3:5])
    assert lengths[5] == 20
    assert set(scheduler.stopped) == {"t3", "t4"}
    assert scheduler.stopped["t3"].startswith("will not beat 0.2")
    assert re.fullmatch(r"Bayesian optimal stopping: 2 trials stopped, \d+ epochs saved", scheduler.debug_string())
    assert not scheduler.supports_buffered_results
    # The same in the other direction.
    mirrored = SurefootStopping(epochs=20, mode="max", bounds=(-1.0, 0.0), complete=3, seed=0, metric="loss")
    again = [follow(mirrored, i, -losses(end)) for i, end in enumerate([0.3, 0.2, 0.25, 0.8, 0.9, 0.1])]
    assert again == lengths


def test_options_that_switch_stopping_off():
    ends = [0.2, 0.9]
    never = SurefootStopping(epochs=20, metric="loss", mode="min", complete=1, stop_until=0, seed=0)
    assert [follow(never, i, losses(end)) for i, end in enumerate(ends)] == [20, 20]
    outside = SurefootStopping(epochs=20, metric="loss", mode="min", complete=1, bounds=(0.0, 0.5), seed=0)
    assert [follow(outside, i, losses(end)) for i, end in enumerate(ends)] == [20, 20]
    free = SurefootStopping(epochs=20, metric="loss", mode="min", complete=1, seed=0)
    assert follow(free, 0, losses(0.2)) == 20
    assert follow(free, 1, losses(0.9)) < 20
    assert follow(free, 2, [*losses(0.2)[:5], 0.01, NAN, 0.5]) == 7  # diverged: its 0.01 is not to be beaten
    assert follow(free, 3, [0.5, NAN, *losses(0.05)[4:]]) == 18  # a number was missing in the first epochs
    longer = SurefootStopping(epochs=5, metric="loss", mode="min", seed=0)
    assert follow(longer, 0, losses(0.2)) == 5  # the whole length of a run
    trial = fake(9)
    assert longer.on_trial_result(None, trial, {"training_iteration": 3}) == TrialScheduler.CONTINUE
    assert longer.on_trial_result(None, trial, {"loss": 3.0}) == TrialScheduler.CONTINUE


def test_a_scheduler_without_epochs_needs_a_policy_that_follows_runs():
    scheduler = SurefootStopping(metric="loss", mode="min")
    plain = SimpleNamespace(search_alg=SimpleNamespace(searcher=search(RandomSearch)))
    for controller in (plain, SimpleNamespace(search_alg=object())):
        with pytest.raises(ValueError, match="needs the epochs of a run"):
            scheduler.on_trial_add(controller, fake(0))
    with pytest.raises(ValueError, match="without epochs the searcher's policy decides"):
        SurefootStopping(bounds=(0.0, 1.0))
    with pytest.raises(ValueError, match="epochs must be a whole number from 1 on, got 0"):
        SurefootStopping(epochs=0)
    with pytest.raises(ValueError, match="seed must be"):
        SurefootStopping(epochs=3, seed=-1)
    with pytest.raises(ValueError, match="what is better"):
        SurefootStopping(epochs=3).on_trial_add(None, fake(0))
    assert not SurefootStopping(epochs=3, metric="loss", mode="min").set_search_properties("other", None)
    assert SurefootStopping(epochs=3, mode="min").set_search_properties("loss", None)


@pytest.mark.parametrize("kept", ["all", "torn", "none"])
def test_a_restored_trial_brings_the_results_that_can_be_read(kept, tmp_path, caplog):
    curve = losses(0.2)
    lines = [json.dumps({"loss": loss, "training_iteration": i}) for i, loss in enumerate(curve, start=1)]
    if kept == "torn":
        lines[6] = lines[6][:10]
    if kept != "none":
        (tmp_path / "result.json").write_text("\n".join(lines))
    last = {"loss": float(curve[11]), "training_iteration": 12}  # later results are not known to the experiment
    trial = fake(0, Trial.TERMINATED, last)
    trial.storage = SimpleNamespace(trial_fs_path=str(tmp_path), storage_filesystem=LocalFileSystem())
    scheduler = SurefootStopping(epochs=20, metric="loss", mode="min", complete=1, seed=0)
    with caplog.at_level("WARNING", logger="surefoot.bridge.ray_tune"):
        scheduler.on_trial_add(None, trial)
    epochs = {"all": range(1, 13), "torn": [1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12], "none": [12]}[kept]
    assert scheduler._curves == {"t0": {epoch: -curve[epoch - 1] for epoch in epochs}}
    assert ("trial t0: only its last result is known" in caplog.text) == (kept == "none")


def test_the_policys_advice_is_followed_through_wrappers():
    searcher = search(BOBOS, epochs=20, complete=1, initial=1, kappa=math.inf)
    controller = SimpleNamespace(search_alg=SimpleNamespace(searcher=ConcurrencyLimiter(searcher, 2)))
    scheduler = SurefootStopping(metric="loss", mode="min")
    lengths = []
    for i, end in enumerate([0.2, 0.9]):
        trial = fake(i)
        searcher.suggest(trial.trial_id)
        scheduler.on_trial_add(controller, trial)
        for epoch, loss in enumerate(losses(end), start=1):
            result = {"loss": loss, "training_iteration": epoch}
            decision = scheduler.on_trial_result(controller, trial, result)
            if decision == TrialScheduler.STOP:
                break
            searcher.on_trial_result(trial.trial_id, result)  # in Ray's order
        searcher.on_trial_complete(trial.trial_id, result)
        lengths.append(epoch)
    assert lengths[0] == 20
    assert lengths[1] < 12
    assert [searcher.policy.length(id) for id in (0, 1)] == lengths
    assert list(scheduler.stopped) == ["t1"]


# -- a real cluster ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster():
    os.environ["RAY_AIR_NEW_OUTPUT"] = "0"
    context = ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield context.address_info["address"]
    ray.shutdown()


def test_a_search_on_two_workers(cluster, tmp_path):
    def train(config):
        import os as system

        if config["net"]["kind"] == "broken":
            raise RuntimeError("this kind never works")
        tune.report({"loss": (config["net"]["x"] - 0.3) ** 2, "pid": system.getpid()})

    space = {"net": {"x": tune.uniform(0.0, 1.0), "kind": tune.choice(["sound", "broken"])}, "data": "none"}
    searcher = SurefootSearch(seed=0)
    tuner = tune.Tuner(
        train,
        param_space=space,
        tune_config=tune.TuneConfig(
            metric="loss", mode="min", num_samples=14, search_alg=searcher, max_concurrent_trials=2, reuse_actors=True
        ),
        run_config=tune.RunConfig(storage_path=str(tmp_path), verbose=0),
    )
    results = tuner.fit()
    policy = searcher.policy
    good = [result for result in results if not result.error]
    assert len(results) == len(policy.history) == 14
    assert sorted(r.metrics["loss"] for r in good) == sorted(o.value for o in policy.history if not o.failed)
    assert all(result.config["data"] == "none" for result in results)
    assert results.get_best_result().metrics["loss"] < 0.01
    # What never works is soon avoided, and no failure was taken for a number.
    assert sum(o.failed for o in policy.history) == results.num_errors >= 1
    assert len({result.metrics["pid"] for result in good}) >= 2
    # Both workers were busy: queries were asked while another was pending.
    open_, most = 0, 0
    for event in policy.events:
        open_ += {"asked": 1, "told": -1}[event["event"]]
        most = max(most, open_)
    assert most == 2


def test_stopping_beside_rays_own_random_search(cluster, tmp_path):
    def train(config):
        for epoch in range(1, 31):
            tune.report({"accuracy": config["x"] * (1.0 - 0.5**epoch)})

    scheduler = SurefootStopping(epochs=12, bounds=(0.0, 1.0), complete=2, seed=0)
    points = [{"x": x} for x in (0.9, 0.8, 0.2, 0.1, 0.95)]
    tuner = tune.Tuner(
        train,
        param_space={"x": tune.uniform(0.0, 1.0)},
        tune_config=tune.TuneConfig(
            metric="accuracy",
            mode="max",
            num_samples=len(points),
            search_alg=tune.search.BasicVariantGenerator(points_to_evaluate=points, max_concurrent=1),
            scheduler=scheduler,
            reuse_actors=True,
        ),
        run_config=tune.RunConfig(storage_path=str(tmp_path), verbose=0),
    )
    results = tuner.fit()
    length = {result.config["x"]: result.metrics["training_iteration"] for result in results}
    assert [length[x] for x in (0.9, 0.8, 0.95)] == [12, 12, 12]
    assert length[0.1] < 12
    assert length[0.2] < 12
    assert len(scheduler.stopped) == 2


def test_an_experiment_that_was_killed_is_restored(cluster, tmp_path, monkeypatch):
    program = [sys.executable, experiment.__file__, cluster, str(tmp_path)]
    environment = {**os.environ, "TUNE_GLOBAL_CHECKPOINT_S": "0.2", "PYTHONPATH": str(ROOT / "src")}
    with (tmp_path / "log").open("w") as log:
        driver = subprocess.Popen(program, env=environment, stdout=log, stderr=log, start_new_session=True)
    folder = tmp_path / "experiment"
    deadline = time.monotonic() + 90
    saved = None
    while (
        saved is None or sum(event["event"] == "told" for event in saved["policy"]["events"]) < 4 or not pending(saved)
    ):
        assert driver.poll() is None, (tmp_path / "log").read_text()
        assert time.monotonic() < deadline, (tmp_path / "log").read_text()
        time.sleep(0.2)
        saved = state_in(folder)
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    saved = state_in(folder)
    (tmp_path / "go").touch()

    rebuilt = []
    added = SurefootStopping.on_trial_add

    def on_trial_add(self, controller, trial):
        added(self, controller, trial)
        if trial.last_result:
            rebuilt.append((self, trial.trial_id, trial.status, dict(self._curves[trial.trial_id])))

    monkeypatch.setattr(SurefootStopping, "on_trial_add", on_trial_add)
    tuner = tune.Tuner.restore(str(folder), experiment.trainable(tmp_path), param_space=experiment.SPACE)
    results = tuner.fit()

    # The searcher went on from its events.
    after = state_in(folder)
    assert after["policy"]["seed"] == saved["policy"]["seed"]
    assert after["policy"]["events"][: len(saved["policy"]["events"])] == saved["policy"]["events"]
    assert len(results) == 9
    assert not pending(after)
    ids = [event["id"] for event in after["policy"]["events"] if event["event"] == "told"]
    assert sorted(ids) == list(range(9))
    xs = [result.config["net"]["x"] for result in results]
    assert sorted(xs)[:2] == experiment.BAD[:2]
    assert len(set(xs)) == 9
    # The scheduler read the curves of the trials that had ended, and of one that had not.
    ended = {trial: curve for _, trial, status, curve in rebuilt if status == Trial.TERMINATED}
    assert len(ended) >= 4
    for curve in ended.values():
        assert list(curve) == list(range(1, len(curve) + 1))
        assert np.allclose(np.diff(np.array(list(curve.values())), 2) / np.diff(list(curve.values()))[:-1], -0.5)
    # Only what it read could tell it that the bad runs are hopeless.
    lengths = {result.config["net"]["x"]: result.metrics["training_iteration"] for result in results}
    assert all(lengths[x] == experiment.EPOCHS for x in experiment.GOOD)
    assert all(lengths[x] < experiment.EPOCHS for x in experiment.BAD)
    assert set(rebuilt[0][0].stopped) >= {
        r.metrics["trial_id"] for r in results if r.config["net"]["x"] in experiment.BAD
    }


def state_in(folder):
    """The newest state of the searcher in an experiment's folder."""
    for path in sorted(folder.glob("searcher-state-*.json"), reverse=True):
        try:
            return json.loads(path.read_text())
        except ValueError:  # it is being written
            return None
    return None


def told(state):
    return sum(event["event"] == "told" for event in state["policy"]["events"])


def pending(state):
    return sum(event["event"] == "asked" for event in state["policy"]["events"]) - told(state)


def test_the_page_about_ray_runs(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "bridges" / "ray.md").read_text(encoding="utf-8")
    namespace = vars(ModuleType("page"))
    blocks = re.findall(r"^```py\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "ray.md", "exec"), namespace)
