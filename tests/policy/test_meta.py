"""RM-GP-UCB and its tasks: formulas, reductions, units, room, and what misleading tasks may do."""

import json
import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from surefoot import (
    GP,
    GPUCB,
    RMGPTS,
    RMGPUCB,
    SE,
    Box,
    Candidates,
    Choice,
    Dives,
    Float,
    Int,
    Linear,
    Matern,
    NotSupported,
    Outcome,
    Paths,
    Policy,
    RandomSearch,
    Space,
    Task,
    ThompsonSampling,
    load,
    widths,
)
from surefoot.policy.transfer.learning import entropic_weights, gap_estimates, next_influence
from surefoot.policy.transfer.rm_gp_ucb import WeightedScore
from surefoot.policy.ucb.gp_ucb import UpperBound

LINE = np.linspace(0.0, 1.0, 60)[:, None]
KNOWN = GP(SE(lengthscale=0.15), noise=0.01)
SPACE = Space(rate=Float(1e-3, 1.0, log=True), depth=Int(1, 5), kind=Choice(["a", "b"]))


def wave(x):
    return float(np.sin(7.0 * x[0]))


def two_tasks(n=12, seed=0):
    """One task like the wave, one unlike it."""
    rng = np.random.default_rng(seed)
    X, Z = rng.random((n, 1)), rng.random((n + 3, 1))
    return [Task(X, [wave(x) + 0.05 for x in X], "alike"), Task(Z, [-wave(x) for x in Z], "unlike")]


def run(policy, f=wave, steps=8):
    for _ in range(steps):
        query = policy.ask()
        policy.tell(query, f(query.x))
    return policy


# -- tasks


def test_a_task_from_a_journal(tmp_path):
    path = tmp_path / "old.jsonl"
    with GPUCB(Box([(0.0, 1.0)]), seed=0, journal=path) as policy:
        policy.tell([0.25], Outcome(4.0, noise=0.5))
        run(policy, steps=3)
        policy.tell(policy.ask(), None)
        policy.ask()
    with path.open("ab") as file:
        file.write(b'{"event":"told","id":4,"va')  # a crash in mid-line
    task = Task.from_journal(path)
    assert task.name == "old"
    assert np.array_equal(task.X, policy.data()[0])
    assert np.array_equal(task.y, policy.data()[1])
    assert task.noise[0] == 0.5
    assert np.isnan(task.noise[1:]).all()
    policy.save(tmp_path / "old.json")
    assert Task.from_journal(tmp_path / "old.json") == task == Task.from_state(policy.state(), "old")


def test_a_task_keeps_names_not_positions():
    """A later space may order its parameters and choices otherwise."""
    old = Space(kind=Choice(["b", "a"]), rate=Float(1e-3, 1.0, log=True), depth=Int(1, 5))
    policy = RandomSearch(old, seed=0)
    policy.tell({"rate": 0.1, "depth": 2, "kind": "a"}, 1.0)
    task = Task.from_state(policy.state())
    assert SPACE.params(task.points(SPACE)[0]) == {"rate": 0.1, "depth": 2, "kind": "a"}
    with pytest.raises(ValueError, match="named parameters"):
        task.points(Box.unit(3))


def test_nothing_measured_is_no_task(tmp_path):
    policy = RandomSearch(Box.unit(1), seed=0)
    policy.tell(policy.ask(), None)
    with pytest.raises(ValueError, match="nothing was measured"):
        Task.from_state(policy.state())
    (tmp_path / "other.json").write_text('{"hello": 1}')
    with pytest.raises(ValueError, match="no schema"):
        Task.from_journal(tmp_path / "other.json")


@pytest.mark.parametrize(
    ("X", "y", "noise"),
    [
        ([[0.1]], [1.0, 2.0], None),
        ([], [], None),
        ([[np.nan]], [1.0], None),
        ([[0.1]], [np.inf], None),
        ([[0.1]], [1.0], -1.0),
        ([[[0.1]]], [1.0], None),
        (0.1, [1.0], None),
        (["a"], [1.0], None),
        ([[0.1], [0.1, 0.2]], [1.0, 2.0], None),
        ([{"a": 0.1}, 0.2], [1.0, 2.0], None),
        ([0.1, {"a": 0.1}], [1.0, 2.0], None),
        ([[0.1]], ["high"], None),
        ([[0.1], [0.2]], [1.0, 2.0], [0.1, 0.1, 0.1]),
    ],
)
def test_bad_tasks(X, y, noise):
    with pytest.raises(ValueError, match=r"task|measurements|noise"):
        Task(X, y, noise=noise)


def test_a_task_from_a_vehicle():
    """Every stop with a value is a measurement."""
    line = Paths(np.arange(9.0)[:, None], Dives((9,), 2), start=4, budget=4)
    policy = GPUCB(line, gp=GP(SE(2.0), noise=1e-4), seed=0)
    policy.tell([4.0], 0.25)
    one = policy.ask()
    policy.tell(one, [1.0, math.nan])
    two = policy.ask()
    policy.tell(two, Outcome(values=[2.0, 3.0], noise=0.5))
    task = Task.from_state(json.loads(json.dumps(policy.state())))
    assert task.X.tolist() == [[4.0], one.x[0].tolist(), *two.x.tolist()]
    assert task.y.tolist() == [0.25, 1.0, 2.0, 3.0]
    assert np.array_equal(task.noise, [math.nan, math.nan, 0.5, 0.5], equal_nan=True)


def test_a_state_that_is_none():
    with pytest.raises(ValueError, match="not the state of a policy"):
        Task.from_state({"schema": 1})


def test_tasks_must_fit_the_domain():
    with pytest.raises(ValueError, match=r"task 'far', measurement 1: x0 = 2\.0 is outside"):
        RMGPUCB(Box.unit(1), tasks=[Task([[0.5], [2.0]], [1.0, 1.0], "far")])
    with pytest.raises(ValueError, match="points of 2 numbers"):
        RMGPUCB(Box.unit(1), tasks=[Task([[0.5, 0.5]], [1.0])])
    with pytest.raises(ValueError, match="measurement 0"):
        RMGPUCB(SPACE, tasks=[Task([{"rate": 5.0, "depth": 1, "kind": "a"}], [1.0])])
    assert Task([[0.5], [2.0]], [1.0, 3.0]).within(Box.unit(1)) == Task([[0.5]], [1.0])
    assert (
        len(
            Task([{"rate": 5.0, "depth": 1, "kind": "a"}, {"rate": 0.5, "depth": 1, "kind": "a"}], [1, 2]).within(SPACE)
        )
        == 1
    )
    with pytest.raises(ValueError, match="no measurement"):
        Task([[2.0]], [1.0]).within(Box.unit(1))
    RMGPUCB(Candidates([0.0, 1.0]), tasks=[Task([[0.3]], [1.0])])  # measured beside the candidates


@pytest.mark.parametrize("tasks", [None, 3, "ab", [3], [(np.zeros((1, 1)), np.zeros(1))]])
def test_tasks_are_tasks(tasks):
    with pytest.raises(TypeError):
        RMGPUCB(Box.unit(1), tasks=tasks)


@pytest.mark.parametrize(
    "bad",
    [
        {"tasks": []},
        {"scaling": "each"},
        {"max_points": 0},
        {"schedule": "bold"},
        {"schedule": "theory"},
        {"learning_rate": -1.0},
        {"decay": 1.0},
        {"sensitivity": math.nan},
        {"influence": 1.5},
        {"influence": "much"},
        {"gap": "median"},
        {"weight_rule": "other"},
        {"initial": -1},
        {"head_start": -1},
    ],
)
def test_options_are_checked(bad):
    with pytest.raises(ValueError):
        RMGPUCB(Box.unit(1), **{"tasks": two_tasks(), **bad})
    if "tasks" not in bad:
        with pytest.raises(TypeError, match="callable"):
            RMGPUCB(Box.unit(1), tasks=two_tasks(), width=2.0)
        with pytest.raises(TypeError, match="callable"):
            RMGPUCB(Box.unit(1), tasks=two_tasks(), task_width=2.0)


# -- state


def test_many_numbers_are_stored_by_hash_and_passed_again(tmp_path):
    rng = np.random.default_rng(0)
    tasks = [Task(rng.random((2000, 1)), rng.random(2000), name=str(i)) for i in range(3)]  # 12,000 numbers together
    policy = run(RMGPUCB(Candidates(LINE), gp=KNOWN, tasks=tasks, max_points=20, seed=0), steps=3)
    text = json.dumps(policy.state(), allow_nan=False)
    assert len(text) < 20_000
    with pytest.raises(ValueError, match=r"tasks=\.\.\."):
        Policy.from_state(json.loads(text))
    with pytest.raises(ValueError, match="differs"):
        Policy.from_state(json.loads(text), tasks=[tasks[1], tasks[0], tasks[2]])
    with pytest.raises(ValueError, match="list of 3"):
        Policy.from_state(json.loads(text), tasks=tasks[:2])
    twin = Policy.from_state(json.loads(text), tasks=tasks)
    assert twin.state() == policy.state()
    assert twin.ask() == policy.ask()
    with RMGPUCB(Candidates(LINE), gp=KNOWN, tasks=tasks, max_points=20, seed=0, journal=tmp_path / "run") as first:
        run(first, steps=2)
    with load(tmp_path / "run", tasks=tasks) as again:
        assert again.ask() == policy.queries[2]


def test_a_resumed_policy_does_not_fit_its_tasks_again(monkeypatch):
    policy = run(RMGPUCB(Box.unit(1), tasks=two_tasks(seed=11), seed=0), steps=3)
    state = policy.state()
    monkeypatch.setattr("surefoot.policy.transfer.models._fits", {})
    monkeypatch.setattr("surefoot.policy.transfer.models.TaskModels.task_fit", lambda *_: pytest.fail("fitted"))
    assert Policy.from_state(state).ask() == policy.ask()


def test_history_survives(tmp_path):
    policy = run(RMGPUCB(Candidates(LINE), gp=KNOWN, tasks=two_tasks(), seed=0), steps=5)
    twin = Policy.from_state(policy.state())
    assert np.array_equal(twin.weight_history, policy.weight_history)
    assert np.array_equal(twin.nu_history, policy.nu_history)
    assert np.array_equal(twin.gaps, policy.gaps)
    assert policy.weight_history.shape == (5, 2)
    assert np.array_equal(policy.weight_history[-1], policy.weights)


# -- the rule


@pytest.mark.parametrize(("gap", "rule", "corrected"), [("mean", "simplified", False), ("max", "exact", True)])
def test_rm_gp_ucb_on_candidates_is_the_textbook_loop(gap, rule, corrected):
    """Against a loop with plain linear algebra that follows the card's numbered steps 1a to 3."""
    kernel, noise, tau, delta = SE(lengthscale=0.15), 0.01, 0.8, 0.05
    tasks = two_tasks()
    policy = RMGPUCB(
        Candidates(LINE),
        gp=GP(kernel, noise=noise),
        tasks=tasks,
        scaling=None,
        learning_rate=0.6,
        decay=0.8,
        sensitivity=0.9,
        gap=gap,
        weight_rule=rule,
        include_noise_correction=corrected,
        task_width=widths.Constant(math.sqrt(tau)),
        seed=0,
    )

    def posterior(X, y, Z):
        K = np.linalg.inv(kernel(X) + noise * np.eye(len(X)))
        k = kernel(Z, X)
        return k @ K @ y, np.sqrt(1.0 - np.einsum("ij,jk,ik->i", k, K, k))

    bounds = [np.add(*(np.array([1.0, math.sqrt(tau)])[:, None] * posterior(t.X, t.y, LINE))) for t in tasks]
    W, nu, rows, y = np.zeros(2), 1.0, [], []
    N = np.array([len(t) for t in tasks])
    for t in range(1, 11):
        query = policy.ask()
        beta = 0.2 * math.log(2.0 * t)
        if t > 1:
            dbar = []
            for task in tasks:
                mean, std = posterior(LINE[rows], np.array(y), task.X)
                U, L = mean + math.sqrt(beta) * std, mean - math.sqrt(beta) * std
                each = np.maximum(np.abs(task.y - U), np.abs(task.y - L))
                dbar.append(each.mean() if gap == "mean" else each.max())
            dbar = np.array(dbar)
            if corrected:
                dbar += math.sqrt(2.0 * noise * math.log(2.0 * N.sum() / delta))
            loss = N.max() ** 1.5 * dbar
            if rule == "exact":
                loss = 2.0 * N**1.5 * np.sqrt(2.0 * noise * np.log(6.0 * N / delta)) + dbar * N**1.5
            W = W - 0.6 / N.max() ** 1.5 * loss
            omega = np.exp(W - W.max()) / np.exp(W - W.max()).sum()
            nu *= min(0.8, float(omega @ dbar) ** -0.9)
            assert np.allclose(policy.gaps, dbar, atol=1e-7)
            assert np.allclose(policy.weights, omega, atol=1e-7)
            mean, std = posterior(LINE[rows], np.array(y), LINE)
        else:
            omega, mean, std = np.full(2, 0.5), np.zeros(60), np.ones(60)
        assert policy.nu == pytest.approx(nu, abs=1e-9)
        zeta = nu * (omega @ bounds) + (1.0 - nu) * (mean + math.sqrt(beta) * std)
        assert query.index == int(np.argmax(zeta))
        rows.append(query.index)
        y.append(wave(query.x) + 0.1 * math.sin(50.0 * t))
        policy.tell(query, y[-1])


@pytest.mark.parametrize("domain", [Box([(0.0, 1.0)]), Candidates(LINE)], ids=["box", "candidates"])
@pytest.mark.parametrize("gp", [KNOWN, KNOWN.refit(every=3)], ids=["known", "refitted"])
def test_no_influence_is_gp_ucb(domain, gp):
    width = widths.Logarithmic(0.2)
    policy = run(RMGPUCB(domain, gp=gp, tasks=two_tasks(), influence=0.0, seed=3))
    plain = run(GPUCB(domain, gp=gp, width=width, seed=3))
    assert [q.x.tobytes() for q in policy.queries] == [q.x.tobytes() for q in plain.queries]


def test_no_influence_is_gp_ucb_on_a_mixed_space():
    def f(x):
        return -float(np.sum((SPACE.encode(x[None])[0] - 0.4) ** 2))

    X = SPACE.sample(40, np.random.default_rng(0))
    task = Task(X, [f(x) for x in X])
    gp = GP(Matern(2.5, lengthscale=0.5, variance=0.05), noise=1e-4, mean=-1.0)
    policy = run(RMGPUCB(SPACE, gp=gp, tasks=[task], influence=0.0, seed=3), f, 5)
    plain = run(GPUCB(SPACE, gp=gp, width=widths.Logarithmic(0.2), seed=3), f, 5)
    assert [q.params for q in policy.queries] == [q.params for q in plain.queries]
    helped = RMGPUCB(SPACE, gp=gp, tasks=[task], seed=3).ask()
    assert f(helped.x) > np.quantile(task.y, 0.8)


def test_no_influence_is_thompson_sampling():
    for domain in (Box([(0.0, 1.0)]), Candidates(LINE)):
        policy = run(RMGPTS(domain, gp=KNOWN, tasks=two_tasks(), influence=0.0, features=64, seed=3), steps=4)
        plain = run(ThompsonSampling(domain, gp=KNOWN, features=64, seed=3), steps=4)
        assert [q.x.tobytes() for q in policy.queries] == [q.x.tobytes() for q in plain.queries]


def test_influence_ends_in_gp_ucb():
    """Once ν is below any use, the tasks are not asked: the policy continues as GP-UCB with the same data would."""
    policy = run(RMGPUCB(Box([(0.0, 1.0)]), gp=KNOWN, tasks=two_tasks(), decay=0.01, seed=3), steps=9)
    assert policy.nu < 1e-12
    plain = GPUCB(Box([(0.0, 1.0)]), gp=KNOWN, width=widths.Logarithmic(0.2), seed=3)
    for observation in policy.history[:-1]:
        plain.tell(observation.x, observation.value)
    rng = plain.stream
    plain.stream = lambda purpose, step=0: rng(purpose, step + 8)  # the ninth query of the other
    assert np.array_equal(plain.ask().x, policy.queries[-1].x)


def test_the_first_query_is_where_the_tasks_are_best():
    tasks = two_tasks()
    policy = RMGPUCB(Candidates(LINE), gp=KNOWN, tasks=tasks, seed=0)
    bounds = np.mean([UpperBound(1.0).value(*KNOWN.condition(t.X, t.y).predict(LINE)) for t in tasks], axis=0)
    assert policy.ask().index == int(np.argmax(bounds))
    assert policy.nu == 1.0
    assert np.array_equal(policy.weights, [0.5, 0.5])
    assert np.isnan(policy.gaps).all()


def test_the_design_comes_after_a_head_start():
    """Two queries of the tasks, then the rest of the design; the influence decays with every query."""
    policy = run(
        RMGPUCB(
            Box.unit(2),
            tasks=[Task(np.random.default_rng(0).random((9, 2)), np.arange(9.0))],
            initial=5,
            sensitivity=0.0,
            seed=0,
        )
    )
    assert ["initial" in q.note for q in policy.queries] == [False] * 2 + [True] * 3 + [False] * 3
    assert policy.nu_history == pytest.approx(0.7 ** np.array([0, 1, 5, 6, 7]))
    plain = RMGPUCB(Box.unit(1), tasks=two_tasks(), seed=0)
    assert plain.initial == 3
    assert RMGPUCB(Box.unit(1), gp=KNOWN, tasks=two_tasks(), seed=0).initial == 0


def test_an_initial_design_teaches_before_the_first_query():
    policy = RMGPUCB(Candidates(LINE), gp=KNOWN, tasks=two_tasks(), initial=4, head_start=0, seed=0)
    run(policy, steps=4)
    assert policy.weight_history.shape == (0, 2)
    policy.ask()
    assert policy.weights[0] > 0.55
    assert policy.nu == 1.0


def test_box_and_dense_candidates_agree():
    asked = []
    for domain in (Box([(0.0, 1.0)]), Candidates(np.linspace(0.0, 1.0, 4001))):
        policy = RMGPUCB(domain, gp=KNOWN, tasks=two_tasks(), seed=0)
        for x in (0.1, 0.5, 0.8):
            policy.tell([x] if isinstance(domain, Box) else domain.points[round(4000 * x)], wave([x]))
        asked.append([policy.ask().x[0] for _ in range(2)])
    assert asked[0] == pytest.approx(asked[1], abs=2e-3)


def test_weighted_scores_differentiate():
    rng = np.random.default_rng(0)
    models = [GP(Matern(2.5, lengthscale=0.5), noise=0.01).condition(rng.random((6, 2)), rng.random(6)) for _ in "abc"]
    score = WeightedScore(
        [(w, model, UpperBound(u)) for w, model, u in zip([0.5, 0.2, 0.3], models, [1, 2, 0], strict=True)]
    )
    E, step = rng.random((7, 2)), 1e-6
    value, slope = score.gradient(E)
    assert np.allclose(value, score(E))
    for i in range(2):
        h = step * np.eye(2)[i]
        assert np.allclose(slope[:, i], (score(E + h) - score(E - h)) / (2 * step), atol=1e-5)


def test_batches():
    """In a batch the influence decays with every query, and one measurement teaches once."""
    policy = run(RMGPUCB(Box([(0.0, 1.0)]), gp=KNOWN, tasks=two_tasks(), seed=0), steps=2)
    weights = policy.weights
    batch = policy.ask(4)
    assert len({round(float(q.x[0]), 6) for q in batch}) == 4
    assert ["gaps" in q.note for q in batch] == [True, False, False, False]
    assert np.array_equal(policy.weight_history[2:], np.repeat(policy.weights[None], 4, axis=0))
    assert not np.array_equal(weights, policy.weights)
    assert (policy.nu_history[3:] <= 0.7 * policy.nu_history[2:-1] + 1e-15).all()
    one_by_one = run(RMGPUCB(Box([(0.0, 1.0)]), gp=KNOWN, tasks=two_tasks(), seed=0), steps=2)
    assert [one_by_one.ask() for _ in range(4)] == batch


def test_a_failed_ask_teaches_nothing():
    from surefoot import Exhausted

    policy = RMGPUCB(Candidates([0.0, 0.5, 1.0]), gp=replace(KNOWN, noise=0.0), tasks=two_tasks(), seed=0)
    policy.tell([0.5], 1.0)
    policy.ask(2)
    nu, weights = policy.nu, policy.weights
    with pytest.raises(Exhausted):
        policy.ask(2)
    assert policy.nu == nu
    assert np.array_equal(policy.weights, weights)


# -- units and scale


def test_pooled_scaling_does_not_know_units():
    """Target, tasks and belief in other units: the same queries and weights. Without scaling they differ."""

    def play(factor, shift, scaling):
        tasks = [Task(t.X, shift + factor * t.y) for t in two_tasks()]
        gp = GP(SE(lengthscale=0.15, variance=factor**2), noise=0.01 * factor**2, mean=shift)
        policy = RMGPUCB(Candidates(LINE), gp=gp, tasks=tasks, scaling=scaling, seed=0)
        run(policy, lambda x: shift + factor * wave(x), 6)
        return [q.index for q in policy.queries], policy.weights, policy.nu

    base, moved = play(1.0, 0.0, "pooled"), play(1000.0, -7.0, "pooled")
    assert base[0] == moved[0]
    assert np.allclose(base[1], moved[1], atol=1e-9)
    assert base[2] == pytest.approx(moved[2])
    raw = play(1000.0, 0.0, None)
    assert raw[1].max() > 0.999999  # gaps of hundreds: one step decides
    assert raw[2] < 1e-9


def test_task_scaling_trusts_shapes_only():
    """Tasks at any level and of any size: the same queries and weights, which is not so by default."""

    def play(scaling, *moves):
        tasks = [Task(t.X, a + b * t.y) for t, (a, b) in zip(two_tasks(), moves, strict=True)]
        policy = run(RMGPUCB(Candidates(LINE), gp=KNOWN, tasks=tasks, scaling=scaling, seed=0), steps=6)
        return [q.index for q in policy.queries], policy.weights

    base, moved = (play("task", *moves) for moves in ([(0.0, 1.0), (0.0, 1.0)], [(5.0, 30.0), (-9.0, 0.01)]))
    assert base[0] == moved[0]
    assert np.allclose(base[1], moved[1], atol=1e-9)
    pooled = [play("pooled", *moves)[1] for moves in ([(0.0, 1.0), (0.0, 1.0)], [(5.0, 30.0), (-9.0, 0.01)])]
    assert abs(pooled[0] - pooled[1]).max() > 0.1


def test_the_tasks_lend_their_scale_to_the_first_measurements():
    """One value has no spread of its own; the belief around it has that of the tasks, whatever the units."""
    for factor in (1e-6, 1e6):
        tasks = [Task(t.X, factor * t.y) for t in two_tasks()]
        policy = RMGPUCB(Box([(0.0, 1.0)]), tasks=tasks, seed=0)
        run(policy, lambda x, factor=factor: factor * wave(x), 1)
        assert 0.2 < policy.posterior().std([[5.0]])[0] / factor < 2.0
        run(policy, lambda x, factor=factor: factor * wave(x), 5)
        plain = GPUCB(Box([(0.0, 1.0)]), seed=0)
        for observation in policy.history:
            plain.tell(observation.x, observation.value)
        # From max(3, d + 1) measurements on, it is the belief of every other policy.
        assert policy.posterior().gp.kernel == plain.posterior().gp.kernel


def test_shared_hyperparameters():
    policy = run(RMGPUCB(Box([(0.0, 1.0)]), tasks=two_tasks(), share_hyperparameters=True, seed=0), steps=5)
    gps = {(gp.kernel, gp.noise, gp.mean) for gp in policy.models.gps()}
    assert len(gps) == 1
    belief = policy.posterior().gp
    assert gps == {(belief.kernel, belief.noise, belief.mean)}
    own = run(RMGPUCB(Box([(0.0, 1.0)]), tasks=two_tasks(), seed=0), steps=5)
    assert len({gp.kernel for gp in own.models.gps()}) == 2


def test_own_noise_of_a_task_is_heard():
    X = LINE[::6]
    lied = np.array([wave(x) for x in X])
    lied[4] += 50.0
    noise = np.full(len(X), 0.01)
    noise[4] = 1e6
    asked = [
        RMGPUCB(Candidates(LINE), gp=KNOWN, tasks=[Task(X, lied, noise=n)], seed=0).ask().index for n in (None, noise)
    ]
    assert abs(LINE[asked[0], 0] - X[4, 0]) < 0.1
    assert wave(LINE[asked[1]]) > 0.9


# -- RM-GP-TS


def test_thompson_follows_the_tasks_first():
    X = np.linspace(0.0, 1.0, 25)[:, None]
    for domain in (Box([(0.0, 1.0)]), Candidates(LINE)):
        for gp in (KNOWN, None):
            first = [
                RMGPTS(domain, gp=gp, tasks=[Task(X, [wave(x) for x in X])] * 2, features=256, seed=s).ask()
                for s in range(6)
            ]
            assert np.mean([wave(q.x) for q in first]) > 0.9
    with pytest.raises(NotSupported, match="spectral density"):
        RMGPTS(Candidates(LINE), gp=GP(Linear(), noise=0.1), tasks=two_tasks())


def test_draws_of_the_tasks_have_their_moments():
    tasks = two_tasks()
    policy = RMGPTS(Candidates(LINE), gp=KNOWN, tasks=tasks, features=512, seed=0)
    weights = np.array([0.7, 0.3])
    draws = np.array([policy.rule.draw(weights, policy.stream("task draws", step))(LINE[::15]) for step in range(1500)])
    models = [KNOWN.condition(t.X, t.y) for t in tasks]
    assert np.allclose(
        draws.mean(axis=0), sum(w * m.mean(LINE[::15]) for w, m in zip(weights, models, strict=True)), atol=0.1
    )
    expected = np.sqrt(sum(w**2 * m.var(LINE[::15]) for w, m in zip(weights, models, strict=True)))
    assert np.allclose(draws.std(axis=0), expected, atol=0.1)
    value, slope = (draw := policy.rule.draw(weights, policy.stream("task draws", 0))).gradient(LINE[5:9])
    assert np.allclose(value, draw(LINE[5:9]))
    assert np.allclose(slope[:, 0], (draw(LINE[5:9] + 1e-6) - draw(LINE[5:9] - 1e-6)) / 2e-6, atol=1e-4)


# -- room


def test_many_long_tasks_fit_in_bounded_room():
    """The factors of 120 tasks of 400 measurements are 154 MB; with inducing points they take a fraction."""
    rng = np.random.default_rng(0)
    tasks = [Task(X := rng.random((400, 1)), [wave(x) for x in X]) for _ in range(120)]
    domain = Box([(0.0, 1.0)])
    tracemalloc.start()
    try:
        policy = RMGPUCB(domain, gp=GP(Matern(2.5, lengthscale=0.1), noise=1e-3), tasks=tasks, max_points=24, seed=0)
        query = policy.ask()
        policy.tell(query, wave(query.x))
        policy.ask()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40e6
    assert wave(query.x) > 0.98
    assert RMGPUCB(domain, tasks=tasks[:1]).max_points >= 5000  # one task of that length is exact
    assert RMGPUCB(domain, tasks=tasks * 5).max_points ** 2 * 600 <= 2**25


# -- small formulas


def test_gaps_are_the_two_sided_maximum():
    rng = np.random.default_rng(0)
    (mean, y), std = rng.normal(size=(2, 30)), rng.random(30)
    starts = [0, 1, 20]
    U, L = mean + 1.7 * std, mean - 1.7 * std
    each = np.split(np.maximum(np.abs(y - U), np.abs(y - L)), [1, 20])
    assert np.allclose(gap_estimates(mean, std, y, starts, 1.7), [e.mean() for e in each])
    assert np.allclose(gap_estimates(mean, std, y, starts, 1.7, aggregate="max"), [e.max() for e in each])


def test_reference_values():
    """Thresholds and theoretical widths quoted in the algorithm's description."""
    assert math.isclose(0.7 ** (-1 / 0.7), 1.6645, abs_tol=1e-4)
    assert next_influence(1.0, 1.66, decay=0.7, sensitivity=0.7) == 0.7
    assert next_influence(1.0, 1.67, decay=0.7, sensitivity=0.7) < 0.7
    assert next_influence(1.0, 0.0, decay=0.7, sensitivity=0.7) == 0.7
    assert next_influence(1.0, math.nan, decay=0.7, sensitivity=0.7) == 0.7
    tasks = [Task([[0.5]], [0.0])] * 4
    theory = RMGPUCB(Candidates(np.linspace(0, 1, 1000)), gp=KNOWN, tasks=tasks, schedule="theory", confidence=0.9)
    assert theory.task_width(1) ** 2 == pytest.approx(23.4, abs=0.05)
    hundred = RMGPUCB(Candidates(np.linspace(0, 1, 100)), gp=KNOWN, tasks=tasks, schedule="theory", confidence=0.9)
    assert hundred.width(1, size=100) ** 2 == pytest.approx(17.0, abs=0.05)
    assert hundred.width(150, size=100) ** 2 == pytest.approx(37.1, abs=0.05)
    assert np.allclose(entropic_weights([1e4, 1e4 + 1.0]), entropic_weights([0.0, 1.0]))
