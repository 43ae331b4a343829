"""The Ax bridge: spaces, and a node under the real client, with trials that fail, run together and are stored."""

from __future__ import annotations

import math
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ax", reason="Ax is not installed here; `make test-ax` runs these tests")

from ax.adapter.registry import Generators
from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, DerivedParameterConfig, RangeParameterConfig
from ax.core.arm import Arm
from ax.core.parameter import ChoiceParameter, FixedParameter, ParameterType, RangeParameter
from ax.core.parameter_constraint import ParameterConstraint
from ax.core.search_space import SearchSpace
from ax.exceptions.core import SearchSpaceExhausted
from ax.exceptions.generation_strategy import MaxParallelismReachedException, OptimizationConfigRequired
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.generator_spec import GeneratorSpec
from ax.generation_strategy.transition_criterion import MinTrials

from surefoot import (
    BOBOS,
    GP,
    GPUCB,
    SE,
    AddGPUCB,
    Ball,
    Box,
    Choice,
    ExpectedImprovement,
    Float,
    Int,
    NoData,
    NotSupported,
    RandomSearch,
    Space,
    StableOpt,
    Straddle,
)
from surefoot.bridge.ax import SurefootNode
from surefoot.bridge.ax.space import AxSpace, Logit, axis_of

FLOAT, INT, STRING, BOOL = ParameterType.FLOAT, ParameterType.INT, ParameterType.STRING, ParameterType.BOOL
X = RangeParameterConfig("x", (0.0, 1.0), "float")
DEPTH = RangeParameterConfig("depth", (1, 9), "int")
RATE = RangeParameterConfig("rate", (1e-4, 1.0), "float", scaling="log")
KIND = ChoiceParameterConfig("kind", ["a", "b", "c"], "str", is_ordered=False)
SIZE = RangeParameterConfig("size", (0.0, 1.0), "float", step_size=0.25)


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def start(node, *parameters, objective="-loss") -> Client:
    client = Client()
    client.configure_experiment(list(parameters) or [X], name="test")
    client.configure_optimization(objective)
    client.set_generation_strategy(GenerationStrategy(nodes=[node]))
    return client


def loss(parameters) -> float:
    return sum(
        {
            "x": lambda v: (v - 0.3) ** 2,
            "depth": lambda v: 0.01 * (v - 4) ** 2,
            "rate": lambda v: 0.1 * (math.log10(v) + 2.0) ** 2,
            "kind": lambda v: 0.0 if v == "b" else 0.3,
            "size": lambda v: (v - 0.5) ** 2,
        }[name](value)
        for name, value in parameters.items()
    )


def run(client, trials, sign=1.0, together=1) -> list[dict]:
    made = []
    for _ in range(trials // together):
        batch = client.get_next_trials(together)
        for index, parameters in batch.items():
            client.complete_trial(index, {"loss": sign * loss(parameters)})
            made.append(parameters)
    return made


# -- spaces -----------------------------------------------------------------------------------------------------------


def space(*parameters, **options) -> AxSpace:
    return AxSpace(SearchSpace(list(parameters), **options))


PARAMETERS = {
    "float": (RangeParameter("p", FLOAT, -1.0, 2.0), Float(-1.0, 2.0), [-1.0, 0.3, 2.0]),
    "log": (RangeParameter("p", FLOAT, 1e-3, 1.0, log_scale=True), Float(1e-3, 1.0, log=True), [1e-3, 0.1]),
    "int": (RangeParameter("p", INT, 1, 5), Int(1, 5), [1, 3, 5]),
    "log int": (RangeParameter("p", INT, 1, 64, log_scale=True), Int(1, 64, log=True), [1, 8, 64]),
    "digits": (RangeParameter("p", FLOAT, 0.0, 1.0, digits=2), Float(0.0, 1.0), [0.25, 0.99]),
    "choice": (ChoiceParameter("p", STRING, ["u", "v", "w"], is_ordered=False), Choice(["u", "v", "w"]), ["u", "w"]),
    "ordered": (ChoiceParameter("p", INT, [8, 16, 64], is_ordered=True, sort_values=True), Int(0, 2), [8, 16, 64]),
    "bool": (ChoiceParameter("p", BOOL, [False, True], is_ordered=False), Choice([False, True]), [False, True]),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_there_and_back(name):
    parameter, expected, values = PARAMETERS[name]
    found = space(parameter)
    assert found.domain == Space(p=expected)
    for value in values:
        again = found.parameters(found.point({"p": value}))["p"]
        assert again == value
        assert type(again) is type(value)
    for x in found.domain.sample(50, np.random.default_rng(0)):
        made = found.parameters(x)
        assert parameter.validate(made["p"])
        assert np.allclose(found.point(made), x, atol=0.01)


def test_shares_on_the_logistic_scale():
    parameter = RangeParameter("p", FLOAT, 0.001, 0.999, logit_scale=True)
    found = space(parameter)
    low, high = found.domain.parameters["p"].low, found.domain.parameters["p"].high
    assert math.isclose(low, math.log(0.001 / 0.999))
    assert math.isclose(high, -low)
    for share in (0.001, 0.3, 0.999):
        assert math.isclose(found.parameters(found.point({"p": share}))["p"], share)
    with pytest.raises(ValueError, match="outside"):
        Logit(0.1, 0.9).number(0.95)


def test_fixed_and_derived_parameters_are_filled_in():
    client = start(
        SurefootNode(RandomSearch, seed=0), X, DerivedParameterConfig("twice", "2 * x + 1", "float"), RATE
    )  # fmt: skip
    made = client.get_next_trials(1)[0]
    assert math.isclose(made["twice"], 2 * made["x"] + 1)
    found = space(RangeParameter("x", FLOAT, 0.0, 1.0), FixedParameter("data", STRING, "digits"))
    assert found.parameters([0.5]) == {"x": 0.5, "data": "digits"}


REFUSED = {
    "constraint": (
        lambda: space(
            RangeParameter("a", FLOAT, 0, 1),
            RangeParameter("b", FLOAT, 0, 1),
            parameter_constraints=[ParameterConstraint(inequality="a + b <= 1")],
        ),
        "constraints on parameters",
    ),
    "fidelity": (lambda: space(RangeParameter("a", FLOAT, 0, 1, is_fidelity=True, target_value=1.0)), "a: .*fidelity"),
    "task": (lambda: space(ChoiceParameter("t", STRING, ["u", "v"], is_task=True, target_value="u")), "t: .*task"),
    "hierarchy": (
        lambda: space(
            ChoiceParameter("root", STRING, ["u", "v"], dependents={"u": ["a"], "v": ["b"]}),
            RangeParameter("a", FLOAT, 0, 1),
            RangeParameter("b", FLOAT, 0, 1),
        ),
        "depend on others",
    ),
    "a fixed root": (
        lambda: space(FixedParameter("root", STRING, "u", dependents={"u": ["a"]}), RangeParameter("a", FLOAT, 0, 1)),
        "root: .*depend on others",
    ),
    "fixed": (lambda: axis_of(FixedParameter("data", STRING, "digits")), "data: no axis stands for a FixedParameter"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_axis_is_named(name):
    make, complaint = REFUSED[name]
    with pytest.raises(NotSupported, match=complaint):
        make()
    with pytest.raises(ValueError, match="nothing to search"):
        space(FixedParameter("data", STRING, "digits"))


def test_a_policy_for_boxes_gets_a_box():
    floats = space(RangeParameter("a", FLOAT, 0, 1), RangeParameter("b", FLOAT, -2, 2))
    assert floats.domain_for((Box,)) == Box([(0.0, 1.0), (-2.0, 2.0)])
    assert isinstance(floats.domain_for((Box, Space)), Space)
    assert isinstance(space(RangeParameter("a", FLOAT, 0.1, 1, log_scale=True)).domain_for((Box,)), Space)
    assert isinstance(space(RangeParameter("a", FLOAT, 0.1, 0.9, logit_scale=True)).domain_for((Box,)), Space)


# -- optimizing -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [None, GPUCB, "GPUCB"])
@pytest.mark.parametrize("objective", ["-loss", "loss"])
def test_minimizing_and_maximizing(policy, objective):
    client = start(SurefootNode(policy, seed=0), objective=objective)
    run(client, 10, sign=1.0 if objective == "-loss" else -1.0)
    best, *_ = client.get_best_parameterization(use_model_predictions=False)
    assert abs(best["x"] - 0.3) < 0.05


def test_all_kinds_of_parameters():
    client = start(SurefootNode(GPUCB, seed=1), X, DEPTH, RATE, KIND, SIZE)
    made = run(client, 24)
    best, *_ = client.get_best_parameterization(use_model_predictions=False)
    assert best["kind"] == "b"
    assert loss(best) < 0.06
    assert {type(made[0][name]) for name in ("depth", "rate", "kind", "size")} == {int, float, str}
    assert all(p["size"] in (0.0, 0.25, 0.5, 0.75, 1.0) and 1 <= p["depth"] <= 9 for p in made)


def test_the_same_seed_gives_the_same_trials():
    first, second, other = (run(start(SurefootNode(seed=s)), 6) for s in (3, 3, 4))
    assert first == second != other


def test_the_node_proposes_what_the_policy_proposes():
    """Ax in between changes nothing: the trials are the policy's own queries."""
    made = run(start(SurefootNode(seed=5), X, RATE), 8)
    policy = ExpectedImprovement(Space(x=Float(0, 1), rate=Float(1e-4, 1.0, log=True)), seed=5, repeats=False)
    for parameters in made:
        query = policy.ask()
        assert query.params == pytest.approx(parameters, rel=1e-6)
        policy.tell(query, -loss(parameters))


def test_trials_in_parallel_differ_and_are_pending():
    node = SurefootNode(GPUCB, seed=0)
    client = start(node)
    run(client, 4)
    batch = client.get_next_trials(4)
    assert len({round(p["x"], 6) for p in batch.values()}) == 4
    more = client.get_next_trials(1)
    assert len(node.policy.pending) == 5  # four that run, and the new one
    assert more.popitem()[1]["x"] not in {p["x"] for p in batch.values()}
    for index, parameters in reversed(batch.items()):  # in any order
        client.complete_trial(index, {"loss": loss(parameters)})
    client.get_next_trials(1)
    assert len(node.policy.history) == 8


def test_failed_abandoned_and_stopped_trials():
    node = SurefootNode(GPUCB, seed=0)
    client = start(node)
    run(client, 4)
    lost = client.get_next_trials(3)
    first, second, third = lost
    client.mark_trial_failed(first)
    client.mark_trial_abandoned(second)
    client.attach_data(third, {"loss": 100.0}, progression=1)
    client.mark_trial_early_stopped(third)
    fresh = client.get_next_trials(1).popitem()[1]
    assert [o.failed for o in node.policy.history] == [False] * 4 + [True, True, False]
    completed = [o.value for o in node.policy.history[:4]]
    assert node.policy.history[6].value == max(completed)  # not 100: nothing worse than the worst completed
    assert all(abs(fresh["x"] - p["x"]) > 1e-6 for p in lost.values())
    assert len(node.policy.pending) == 1  # the fresh one


def test_stale_trials_are_forgotten():
    node = SurefootNode(GPUCB, seed=0)
    client = start(node)
    run(client, 3)
    client._experiment.new_trial().add_arm(Arm({"x": 0.77})).mark_stale()
    client.get_next_trials(1)
    assert len(node.policy.history) == 3
    assert node.policy.queries[3].x[0] == 0.77
    assert [query.id for query in node.policy.pending] == [4]  # the new one


def test_arms_outside_the_search_space_are_not_used(caplog):
    node = SurefootNode(GPUCB, seed=0)
    client = start(node)
    run(client, 3)
    client._experiment.search_space = SearchSpace([RangeParameter("x", FLOAT, 0.4, 1.0)])
    made = [trial.arm for trial in client._experiment.trials.values()]
    outside = [arm.name for arm in made if arm.parameters["x"] < 0.4]
    assert 0 < len(outside) < 3
    with caplog.at_level("INFO", logger="surefoot.bridge.ax"):
        assert client.get_next_trials(1).popitem()[1]["x"] >= 0.4
    assert len(node.policy.history) == 3 - len(outside)
    assert all(f"arm {name} is not used: x" in caplog.text for name in outside)


def test_points_that_others_wait_for_are_pending_once_and_inside():
    node = SurefootNode(GPUCB, seed=0)
    client = start(node)
    run(client, 3)
    node.update_generator_state(client._experiment, client._experiment.lookup_data())
    first = node.get_next_candidate([{"x": 0.77}, {"x": 7.0}])  # the second is of another search space
    second = node.get_next_candidate([{"x": 0.77}, {"x": 7.0}, first])
    assert [query.x[0] for query in node.policy.pending] == pytest.approx([0.77, first["x"], second["x"]])
    assert len({0.77, first["x"], second["x"]}) == 3


def test_standard_errors_are_noise():
    node = SurefootNode(GPUCB, seed=0)
    client = start(node)
    for sem in (0.1, 0.0, None):
        index, parameters = client.get_next_trials(1).popitem()
        client.complete_trial(index, {"loss": loss(parameters) if sem is None else (loss(parameters), sem)})
    client.get_next_trials(1)
    noises = [o.outcome.noise for o in node.policy.history]
    assert noises == [pytest.approx(0.01), 0.0, None]


def test_several_metrics_can_be_weighed():
    node = SurefootNode(GPUCB, seed=0)
    client = start(node, objective="2 * gain - loss")
    (index,) = client.get_next_trials(1)
    client.complete_trial(index, {"loss": (1.0, 0.1), "gain": (3.0, 0.2)})
    client.get_next_trials(1)
    assert node.policy.history[0].value == pytest.approx(5.0)
    assert node.policy.history[0].outcome.noise == pytest.approx(0.01 + 0.16)


def test_rounded_parameters_keep_their_notes_and_are_pending_once():
    found = SearchSpace([RangeParameter("x", FLOAT, 0.0, 1.0, digits=2)])
    node = SurefootNode(GPUCB, seed=0)
    client = start(node)
    client._experiment.search_space = found
    made = run(client, 6)
    assert all(round(p["x"], 2) == p["x"] for p in made)
    assert ["initial" in query.note for query in node.policy.queries] == [True] * 3 + [False] * 3
    batch = client.get_next_trials(3)
    assert len(node.policy.pending) == len(batch) == 3


def test_trials_attached_by_hand_are_learnt_from():
    node = SurefootNode(GPUCB, seed=0)
    client = start(node)
    for x in (0.05, 0.35, 0.8):
        client.complete_trial(client.attach_trial({"x": x}), {"loss": loss({"x": x})})
    made = run(client, 4)
    assert [o.x[0] for o in node.policy.history[:3]] == [0.05, 0.35, 0.8]
    assert min(abs(p["x"] - 0.3) for p in made) < 0.05


def test_a_node_after_another():
    sobol = GenerationNode(
        name="sobol",
        generator_specs=[GeneratorSpec(Generators.SOBOL, generator_kwargs={"seed": 0})],
        transition_criteria=[MinTrials(threshold=3, transition_to="Surefoot", use_all_trials_in_exp=True)],
    )
    node = SurefootNode(GPUCB, seed=0, initial=0)
    client = Client()
    client.configure_experiment([X])
    client.configure_optimization("-loss")
    client.set_generation_strategy(GenerationStrategy(nodes=[sobol, node]))
    run(client, 8)
    names = [t.generator_runs[0]._generation_node_name for t in client._experiment.trials.values()]
    assert names == ["sobol"] * 3 + ["Surefoot"] * 5
    best, *_ = client.get_best_parameterization(use_model_predictions=False)
    assert abs(best["x"] - 0.3) < 0.05


def test_a_robust_design():
    """StableOpt under Ax: the narrow peak at 0.8 is higher, the broad one at 0.3 is what survives an error of 0.1."""

    def value(x):
        return math.exp(-(((x - 0.3) / 0.25) ** 2)) + 1.5 * math.exp(-(((x - 0.8) / 0.03) ** 2))

    node = SurefootNode(StableOpt, perturbation=Ball(0.1), gp=GP(SE(0.1, variance=1.0), noise=1e-4), seed=0)
    client = start(node, objective="gain")
    for _ in range(25):
        index, parameters = client.get_next_trials(1).popitem()
        client.complete_trial(index, {"gain": value(parameters["x"])})
    assert all("center" in query.note for query in node.policy.queries)  # notes came through Ax's metadata
    parameters, answer = node.recommend(client)
    worst = min(value(x) for x in np.linspace(parameters["x"] - 0.1, parameters["x"] + 0.1, 21))
    assert worst > 0.7  # the highest possible is 0.85
    assert answer.mean is not None


def test_the_page_runs(capsys):
    page = (Path(__file__).parents[2] / "docs" / "bridges" / "ax.md").read_text(encoding="utf-8")
    names: dict = {}
    for block in re.findall(r"^```py\n(.*?)^```$", page, flags=re.M | re.S):
        exec(block, names)
    assert 0.0 <= names["parameters"]["x"] <= 1.0
    assert "rate" in capsys.readouterr().out


# -- storing ----------------------------------------------------------------------------------------------------------


def test_a_stored_client_goes_on_with_the_same_trials(tmp_path):
    client = start(
        SurefootNode(GPUCB, seed=7, gp=GP(SE(0.3), noise=1e-3), transition_criteria=None), X, KIND, objective="-loss"
    )
    run(client, 4)
    client.get_next_trials(1)  # one is pending
    client.save_to_json_file(str(tmp_path / "client.json"))
    loaded = Client.load_from_json_file(str(tmp_path / "client.json"))
    for ours, theirs in zip(run(loaded, 4), run(client, 4), strict=True):  # Ax stores ten decimals of a value
        assert ours["kind"] == theirs["kind"]
        assert ours["x"] == pytest.approx(theirs["x"], abs=1e-6)
    node = loaded._generation_strategy._nodes[0]
    assert repr(node).startswith("SurefootNode(GPUCB, seed=7")
    assert node.policy.gp == GP(SE(0.3), noise=1e-3)


def test_a_new_node_goes_on_where_another_process_was(tmp_path):
    """Without a seed, the experiment gives one: nodes of several processes agree."""
    client = start(SurefootNode())
    run(client, 5)
    client.save_to_json_file(str(tmp_path / "client.json"))
    expected = client.get_next_trials(1).popitem()[1]
    loaded = Client.load_from_json_file(str(tmp_path / "client.json"))
    loaded.set_generation_strategy(GenerationStrategy(nodes=[SurefootNode()]))
    assert loaded.get_next_trials(1).popitem()[1] == pytest.approx(expected, abs=1e-6)


def test_code_is_not_stored(tmp_path):
    client = start(SurefootNode(lambda domain, seed, **options: GPUCB(domain, seed=seed, **options), seed=0))
    run(client, 2)
    with pytest.raises(ValueError, match="holds code"):
        client.save_to_json_file(str(tmp_path / "client.json"))


# -- refusals ---------------------------------------------------------------------------------------------------------


class OneAtATime(GPUCB):
    """A sequential policy."""

    parallel = False


def test_a_sequential_policy_waits():
    client = start(SurefootNode(OneAtATime, seed=0))
    assert len(client.get_next_trials(1)) == 1
    with pytest.raises(MaxParallelismReachedException):
        client.get_next_trials(1)
    client.complete_trial(0, {"loss": 1.0})
    assert len(client.get_next_trials(1)) == 1


def test_a_finite_space_is_exhausted():
    client = start(SurefootNode(GPUCB, seed=0), KIND)
    made = run(client, 3)
    assert {p["kind"] for p in made} == {"a", "b", "c"}
    with pytest.raises(SearchSpaceExhausted):
        client.get_next_trials(1)


def test_bad_arguments():
    with pytest.raises(TypeError, match="policy"):
        SurefootNode(3)
    with pytest.raises(ValueError, match="no policy 'Nonsense'"):
        SurefootNode("Nonsense")
    with pytest.raises(ValueError, match="no policy 'GP'"):
        SurefootNode("GP")
    with pytest.raises(ValueError, match="journal"):
        SurefootNode(journal="run.jsonl")
    with pytest.raises(NoData, match="no experiment"):
        _ = SurefootNode().policy
    for node, parameters, objective, complaint in [
        (SurefootNode(BOBOS, epochs=10), X, "-loss", "steps"),
        (SurefootNode(), X, "-loss, -cost", "one objective"),
        (SurefootNode(AddGPUCB), KIND, "-loss", "works on Box"),
        (SurefootNode(lambda domain, seed, repeats: 3), X, "-loss", "policy must return a policy, got 3"),
        (SurefootNode(lambda domain, seed, repeats: RandomSearch(Box.unit(2))), X, "-loss", "not the search space"),
    ]:
        with pytest.raises((NotSupported, TypeError, ValueError), match=complaint):
            start(node, parameters, objective=objective).get_next_trials(1)
    client = Client()
    client.configure_experiment([X])
    with pytest.raises(OptimizationConfigRequired, match="no objective yet; configure its optimization"):
        SurefootNode().recommend(client)
    client = start(SurefootNode())
    with pytest.raises(NotSupported, match="cannot be fixed"):
        client.get_next_trials(1, fixed_parameters={"x": 0.5})
    client.configure_optimization("-loss", outcome_constraints=["cost <= 3"])
    with pytest.raises(NotSupported, match="outcome constraints"):
        client.get_next_trials(1)


def test_an_answer_that_is_no_arm_is_refused():
    node = SurefootNode(Straddle, threshold=0.0, points=20, seed=0)
    client = start(node)
    run(client, 3)
    with pytest.raises(NotSupported, match="the answer of Straddle is no arm of this experiment"):
        node.recommend(client)


def test_an_experiment_without_a_name_needs_no_seed():
    client = Client()
    client.configure_experiment([X])
    client.configure_optimization("-loss")
    client.set_generation_strategy(GenerationStrategy(nodes=[node := SurefootNode()]))
    for value in (0.5, 1e200, 0.25):  # the second is no measurement
        (index,) = client.get_next_trials(1)
        client.complete_trial(index, {"loss": value})
    client.get_next_trials(1)
    assert [o.failed for o in node.policy.history] == [False, True, False]
