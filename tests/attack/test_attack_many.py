"""Many attacks at once: seeds of their own, and results as soon as they are there."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.attack import BlackBox, NormBall, attack_many
from surefoot.attack.latent_search import RandomLatentSearch


def scores(images):
    bright = 1.0 / (1.0 + np.exp(-60.0 * (images.mean(axis=(1, 2)) - 0.5)))
    return np.column_stack([1.0 - bright, bright])


IMAGES = np.stack([np.full((8, 8), level) for level in (0.499, 0.49, 0.2)])
METHOD = RandomLatentSearch(sizes=(2, 4))


def attack(box, rows=(0, 1, 2), **options):
    return attack_many(
        box,
        IMAGES[list(rows)],
        [1] * len(rows),
        labels=[0] * len(rows),
        method=METHOD,
        ball=NormBall(0.1),
        budget=30,
        **options,
    )


def plain(result):
    return {**result.to_dict(), "found": result.adversarial.tolist()}


def test_each_result_is_seen_once_when_it_is_over():
    seen, box = [], BlackBox(scores)
    at = []

    def watch(i, result):
        seen.append((i, plain(result)))
        at.append(box.queries)

    results = attack(box, watch=watch)
    assert sorted(i for i, _ in seen) == [0, 1, 2]
    assert dict(seen) == {i: plain(result) for i, result in enumerate(results)}
    assert seen[-1][0] == 2  # too dark to be misled: the last one to end
    assert at[0] < at[-1] == box.queries == sum(r.queries for r in results)


def test_what_the_models_budget_leaves_over_is_seen_as_well():
    seen = []
    results = attack(BlackBox(scores, budget=10), watch=lambda i, result: seen.append(i))
    assert sorted(seen) == [0, 1, 2]
    assert sum(r.queries for r in results) <= 10


def test_seeds_for_each_image_make_an_attack_the_same_alone():
    together = attack(BlackBox(scores), seed=[5, 6, 7])
    for i, seed in enumerate((5, 6, 7)):
        assert plain(attack(BlackBox(scores), rows=[i], seed=[seed])[0]) == plain(together[i])
    with pytest.raises(ValueError, match="3 images need 3 seeds"):
        attack(BlackBox(scores), seed=[1, 2])


def test_an_array_of_seeds_is_one_for_each_image():
    results = attack(BlackBox(scores), seed=np.array([3, 4, 5]))
    assert [plain(r) for r in results] == [plain(r) for r in attack(BlackBox(scores), seed=[3, 4, 5])]
    assert [r.seed for r in results] == [3, 4, 5]


def test_no_image_at_all_is_said_to_be_none():
    with pytest.raises(ValueError, match="no image"):
        attack_many(BlackBox(scores), np.zeros((0, 8, 8)), ball=NormBall(0.1))
