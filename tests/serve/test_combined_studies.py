"""Families that meet behind the service: drift, robust batches by many workers, robust choices in a space."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest

from surefoot import (
    GP,
    SE,
    TVGPUCB,
    Box,
    Choice,
    Client,
    Float,
    Groups,
    Int,
    RobustBatch,
    Space,
    StableOpt,
    WeightedBox,
)
from surefoot.errors import NotSupported

VALVE = Box([(0.0, 1.0)])
BELIEF = GP(SE(0.3), noise=1e-3)


@pytest.fixture
def client(sqlite_server):
    with Client(sqlite_server.url, token=sqlite_server.token()) as made:
        yield made


def waste(x, hour):
    return 4.0 * (x[0] - 0.5 - 0.3 * math.sin(hour / 12.0)) ** 2


class TestDrift:
    def test_asked_with_the_hour_as_at_home(self, client):
        options = {"forgetting": 0.03, "gp": BELIEF}
        study = client.create("valve", VALVE, policy="TVGPUCB", direction="minimize", seed=0, **options)
        home = TVGPUCB(VALVE, seed=0, **options)
        hour = 0.0
        for step in range(12):
            hour += 0.7 + 0.2 * (step % 3)
            query, same = study.ask(time=hour), home.ask(time=hour)
            assert query == same
            assert query.time == hour
            study.tell(query, waste(query.x, hour))
            home.tell(same, -waste(same.x, hour))
        assert study.recommend() == home.recommend().negated()

    def test_time_runs_forwards_for_all_clients_together(self, client, sqlite_server):
        study = client.create("clock", VALVE, policy="TVGPUCB", seed=0, forgetting=0.1, gp=BELIEF)
        study.tell(study.ask(time=5.0), 1.0)
        with Client(sqlite_server.url, token=sqlite_server.token()) as other:
            late = other.study(study.id)
            with pytest.raises(ValueError, match="time"):
                late.ask(time=4.0)
            assert late.ask(time=5.5).time == 5.5
        assert study.info()["events"] == 3

    def test_the_time_tells_nothing_to_a_policy_without_a_clock(self, client):
        study = client.create("no clock", VALVE, policy="GPUCB", seed=0)
        with pytest.raises(NotSupported, match=r"GPUCB.ask\(\) takes no context, not 'time'"):
            study.ask(time=1.0)
        assert study.info()["events"] == 0


class TestWorkers:
    def test_a_robust_batch_shared_by_workers_some_of_which_vanish(self, client, sqlite_server):
        study = client.create("shared", Box.unit(2), policy="RobustBatch", seed=0, tau=2, pool=120, gp=BELIEF)
        together = threading.Barrier(5)
        lost, failures = [], []

        def worker(number):
            try:
                with Client(sqlite_server.url, token=sqlite_server.token()) as mine:
                    here = mine.study(study.id)
                    for turn in range(4):
                        together.wait(60)  # all five are under way before any of them comes back
                        query = here.ask()
                        together.wait(60)
                        if number == turn:
                            lost.append(query)
                            here.cancel(query)
                        else:
                            here.tell(query, -float(((query.x - [0.7, 0.2]) ** 2).sum()))
            except BaseException as error:
                failures.append(error)
                together.abort()

        workers = [threading.Thread(target=worker, args=(i,)) for i in range(5)]
        for each in workers:
            each.start()
        for each in workers:
            each.join()
        assert not failures
        info = study.info()
        assert (info["told"], info["pending"], len(lost)) == (16, 0, 4)
        asked = [event for event in study.trace() if event["event"] == "asked"]
        assert len(asked) == 20
        assert len({tuple(event["x"]) for event in asked[:5]}) == 5
        # The first batch is the one that a policy at home gives, whoever asked for which of its points.
        home = RobustBatch(Box.unit(2), seed=0, tau=2, pool=120, gp=BELIEF)
        assert [event["x"] for event in asked[:5]] == [query.x.tolist() for query in home.ask(5)]
        assert np.abs(study.recommend().x - [0.7, 0.2]).max() < 0.2


class TestRobustSpace:
    space = Space(rate=Float(0.01, 1.0, log=True), teeth=Int(5, 40), supplier=Choice(["A", "B", "C"]))

    @pytest.mark.parametrize(
        "perturbation",
        [WeightedBox({"rate": 0.05, "teeth": 2}), Groups({"supplier": {"home": ["A", "B"]}})],
        ids=["numbers", "choices"],
    )
    def test_names_travel(self, client, perturbation):
        options = {"perturbation": perturbation, "gp": GP(SE(0.4), noise=1e-3)}
        study = client.create("gear", self.space, policy="StableOpt", seed=0, **options)
        home = StableOpt(self.space, seed=0, **options)
        for _ in range(4):
            query, same = study.ask(), home.ask()
            assert query == same
            value = -abs(query.params["teeth"] - 20) / 20.0
            study.tell(query, value)
            home.tell(same, value)
        assert study.recommend() == home.recommend()

    def test_what_has_no_meaning_is_refused_with_the_same_words(self, client):
        with pytest.raises(NotSupported, match="'supplier' is a choice, which has no distances"):
            client.create("gear", self.space, policy="StableOpt", perturbation=WeightedBox({"supplier": 1.0}))
