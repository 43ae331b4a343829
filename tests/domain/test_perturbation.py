"""Perturbations: every fast minimum against a brute-force one, and every refusal in words."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot import AroundEstimate, Ball, Box, Candidates, Groups, Space, UnknownParameters, WeightedBox
from surefoot.domain import Float
from surefoot.domain.minfilter import RegularGrid, box_minimum, footprint_minimum, window_minimum
from surefoot.domain.perturbation import perturbation_from_dict
from surefoot.domain.product import WithValues
from surefoot.domain.sets import Filtered, ListedSets

seeds = st.integers(0, 2**32 - 1)


def lattice(*axes):
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def brute(points, values, inside):
    """The minimum over {z : inside(x, z)} for every x, one by one."""
    return np.array([min(v for z, v in zip(points, values, strict=True) if inside(x, z)) for x in points])


def polynomial(P):
    x, y = P.T
    in_x = -2 * x**6 + 12.2 * x**5 - 21.2 * x**4 + 6.4 * x**3 + 4.7 * x**2 - 6.2 * x
    in_y = -(y**6) + 11 * y**5 - 43.3 * y**4 + 74.8 * y**3 - 56.9 * y**2 + 10 * y
    return in_x + in_y + 4.1 * x * y + 0.1 * x**2 * y**2 - 0.4 * x * y**2 - 0.4 * x**2 * y


class TestFilters:
    @settings(max_examples=60, deadline=None)
    @given(seeds, st.integers(1, 24), st.integers(0, 30))
    def test_windows(self, seed, length, half):
        values = np.random.default_rng(seed).standard_normal((3, length))
        expected = [[row[max(0, i - half) : i + half + 1].min() for i in range(length)] for row in values]
        assert window_minimum(values, half).tolist() == expected
        assert window_minimum(values.T, half, axis=0).T.tolist() == expected

    @settings(max_examples=40, deadline=None)
    @given(seeds, st.integers(1, 9), st.integers(0, 5))
    def test_a_window_grows_from_a_smaller_one(self, seed, small, more):
        values = np.random.default_rng(seed).standard_normal(20)
        grown = window_minimum(window_minimum(values, small), small + more, known=small)
        assert grown.tolist() == window_minimum(values, small + more).tolist()

    @settings(max_examples=60, deadline=None)
    @given(seeds, st.lists(st.integers(1, 7), min_size=1, max_size=3))
    def test_boxes_and_footprints(self, seed, shape):
        rng = np.random.default_rng(seed)
        values = rng.standard_normal(shape)
        places = lattice(*(np.arange(s) for s in shape))
        halves = rng.integers(0, 4, size=len(shape))
        expected = brute(places, values.ravel(), lambda x, z: (abs(x - z) <= halves).all())
        assert box_minimum(values, halves).ravel().tolist() == expected.tolist()

        layers = rng.integers(-1, 4, size=tuple(2 * rng.integers(0, 3, size=len(shape) - 1) + 1))
        layers.ravel()[layers.size // 2] = max(layers.ravel()[layers.size // 2], 0)  # no empty set: the point itself
        middle = np.array(layers.shape) // 2

        def inside(x, z):
            offset = tuple((z - x)[:-1] + middle)
            known = all(0 <= o < s for o, s in zip(offset, layers.shape, strict=True))
            return known and abs(z[-1] - x[-1]) <= layers[offset]

        assert footprint_minimum(values, layers).ravel().tolist() == brute(places, values.ravel(), inside).tolist()

    def test_grids_are_found_in_any_order_and_only_where_there_are_any(self):
        points = lattice(np.linspace(0, 1, 5), np.linspace(-3, 4, 4), [7.0])
        assert RegularGrid.find(points).cells is None
        shuffled = points[np.random.default_rng(0).permutation(20)]
        grid = RegularGrid.find(shuffled)
        assert grid.shape == (5, 4, 1)
        values = np.arange(20.0)
        assert grid.collect(grid.spread(values)).tolist() == values.tolist()
        assert RegularGrid.find(points[:-1]) is None
        assert RegularGrid.find(np.vstack([points[:-1], points[:1]])) is None  # one cell twice, another never
        assert RegularGrid.find(lattice([0.0, 1.0, 2.1], [0.0, 1.0])) is None


class TestBalls:
    @settings(max_examples=50, deadline=None)
    @given(
        seeds,
        st.sampled_from([1.0, 1.5, 2.0, np.inf]),
        st.just(0.0) | st.floats(1e-6, 1.5),
        st.booleans(),
        st.booleans(),
    )
    def test_equal_to_brute_force_with_borders(self, seed, norm, radius, regular, shuffled):
        rng = np.random.default_rng(seed)
        points = lattice(np.linspace(0, 1, 7), np.linspace(0, 2, 6)) if regular else rng.random((30, 2))
        points = points[rng.permutation(len(points))] if shuffled else points
        values = rng.standard_normal(len(points))
        family = Ball(radius, norm).on(Candidates(points))
        assert isinstance(family, Filtered) == (regular and radius > 0)

        def inside(x, z):
            return np.linalg.norm(z - x, ord=norm) <= radius * (1 + 1e-9)

        assert family.minimum(values).tolist() == brute(points, values, inside).tolist()
        for center in (0, len(points) // 2):
            assert family.members(center).tolist() == [i for i, z in enumerate(points) if inside(points[center], z)]

    @settings(max_examples=30, deadline=None)
    @given(seeds, st.lists(st.sampled_from([0.0, 0.2, 0.5, 3.0]), min_size=2, max_size=2), st.booleans())
    def test_weighted_boxes(self, seed, radii, regular):
        rng = np.random.default_rng(seed)
        axis = np.linspace(0, 1, 6)
        points = lattice(axis, axis)
        points = points if regular else points[rng.choice(36, 25, replace=False)]
        values = rng.standard_normal(len(points))
        family = WeightedBox(radii).on(Candidates(points))
        reach = np.array(radii) + 1e-9
        assert (
            family.minimum(values).tolist() == brute(points, values, lambda x, z: (abs(z - x) <= reach).all()).tolist()
        )

    def test_three_dimensions(self):
        points = lattice(np.arange(5.0), np.arange(4.0), np.arange(6.0))
        values = np.random.default_rng(3).standard_normal(len(points))
        expected = brute(points, values, lambda x, z: np.linalg.norm(z - x) <= 2.0)
        assert Ball(2.0).on(Candidates(points)).minimum(values).tolist() == expected.tolist()

    @pytest.mark.parametrize("start", [0.0, 0.3, 1000.0])
    def test_exact_multiples_of_the_spacing_are_in_reach(self, start):
        points = np.linspace(start, start + 1.0, 11)
        for candidates in (points, np.append(points, start + 1.05)):  # a grid, and not quite one
            assert Ball(0.3).on(Candidates(candidates)).members(5).tolist() == [2, 3, 4, 5, 6, 7, 8]

    def test_nested_balls_have_falling_minima(self):
        points = lattice(np.linspace(0, 1, 12), np.linspace(0, 1, 9))
        values = np.random.default_rng(0).standard_normal(len(points))
        minima = [Ball(r).on(Candidates(points)).minimum(values) for r in (0.0, 0.1, 0.13, 0.4, 2.0)]
        assert minima[0].tolist() == values.tolist()
        assert all((b <= a).all() for a, b in pairwise(minima))
        assert (minima[-1] == values.min()).all()

    def test_the_constants_of_the_polynomial(self):
        """Bogunovic et al. 2018, section 5: 20.82 and −4.33; what the narrow peak is worth, −22.35."""
        points = lattice(np.linspace(-0.95, 3.2, 100), np.linspace(-0.45, 4.4, 100))
        values = polynomial(points)
        family = Ball(0.5).on(Candidates(points))
        worst = family.minimum(values)
        assert len(family.offsets) == 379
        assert values.max() == pytest.approx(20.8225, abs=1e-4)
        assert points[values.argmax()] == pytest.approx([2.8227, 4.0081], abs=1e-4)
        assert worst.max() == pytest.approx(-4.3334, abs=1e-4)
        assert points[worst.argmax()] == pytest.approx([-0.1955, 0.2848], abs=1e-4)
        assert worst[values.argmax()] == pytest.approx(-22.350, abs=1e-3)

    def test_any_distance_even_one_that_is_not_symmetric(self):
        points = Candidates([0.0, 1.0, 2.0, 3.0])
        upwards = Ball(1.0, lambda X, Z: np.where(Z.T >= X, Z.T - X, np.inf)).on(points)
        assert upwards.minimum(np.array([0.0, 5.0, 2.0, 7.0])).tolist() == [0.0, 2.0, 2.0, 7.0]

    def test_a_point_from_which_nothing_is_reached(self):
        with pytest.raises(ValueError, match=r"perturbation set of \[0.0\] is empty"):
            Ball(0.5, lambda X, Z: np.ones((len(X), len(Z)))).on(Candidates([0.0, 1.0]))
        with pytest.raises(ValueError, match="has shape"):
            Ball(0.5, lambda X, Z: np.zeros(3)).on(Candidates([0.0, 1.0]))

    @pytest.mark.parametrize("radius", [-0.1, np.nan, np.inf])
    def test_radii_that_are_none(self, radius):
        with pytest.raises(ValueError, match="radius must be finite"):
            Ball(radius)
        with pytest.raises(ValueError, match="radius must be finite"):
            WeightedBox([1.0, radius])

    def test_refusals(self):
        with pytest.raises(ValueError, match="norm must be"):
            Ball(1.0, 0.5)
        with pytest.raises(ValueError, match="3 radii for a domain of 2"):
            WeightedBox([1.0, 1.0, 1.0]).on(Box.unit(2))
        with pytest.raises(ValueError, match="needs Candidates"):
            Ball(1.0, lambda X, Z: np.zeros((len(X), len(Z)))).on(Box.unit(2))
        with pytest.raises(ValueError, match="needs Candidates, not a Space"):
            Ball(1.0, lambda X, Z: np.zeros((len(X), len(Z)))).on(Space(x=Float(0.0, 1.0)))


class TestParameters:
    def test_every_design_with_every_value(self):
        unknown = UnknownParameters([[0.0, 1.0], [2.0, 3.0]])
        pairs = unknown.join(Candidates([5.0, 6.0, 7.0]))
        assert (pairs.size, pairs.dimension) == (6, 3)
        family = unknown.on(pairs)
        values = np.array([3.0, 1.0, 4.0, 1.5, 9.0, 2.6])
        assert family.minimum(values).tolist() == values.reshape(3, 2).min(axis=1).tolist()
        assert family.answer(2)["x"].tolist() == [7.0]
        assert family.center_of(np.array([5, 0])).tolist() == [2, 0]
        assert family.itself(0) is None

    def test_pairs_in_any_order_and_not_all_of_them(self):
        pairs = Candidates([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 7.0]])  # 7 is no value of the parameter
        family = UnknownParameters([0.0, 1.0]).on(pairs)
        assert family.points.tolist() == [[1.0], [0.0]]
        assert family.minimum(np.array([3.0, 2.0, 1.0, -9.0])).tolist() == [1.0, 2.0]

    def test_near_an_estimate(self):
        near = AroundEstimate([0.0, 0.0], 1.0, lattice([-1.0, 0.0, 1.0], [-1.0, 0.0, 1.0]))
        assert len(near.on(near.join(Candidates([1.0, 2.0]))).members(1)) == 5
        square = AroundEstimate([0.0, 0.0], 1.0, lattice([-1.0, 0.0, 1.0], [-1.0, 0.0, 1.0]), norm=np.inf)
        assert len(square.on(square.join(Candidates([1.0, 2.0]))).members(1)) == 9

    def test_refusals(self):
        for empty in ([], np.empty((0, 2)), np.empty((2, 0))):
            with pytest.raises(ValueError, match="empty"):
                UnknownParameters(empty)
        with pytest.raises(ValueError, match="one of the two"):
            UnknownParameters()
        with pytest.raises(ValueError, match="one of the two"):
            UnknownParameters([1.0], box=[(0.0, 1.0)])
        with pytest.raises(ValueError, match="twice"):
            UnknownParameters([1.0, 1.0])
        with pytest.raises(ValueError, match="finite"):
            UnknownParameters([1.0, np.nan])
        with pytest.raises(ValueError, match="give values="):
            UnknownParameters(box=[(0.0, 1.0)]).join(Candidates([1.0]))
        with pytest.raises(ValueError, match="pairs"):
            UnknownParameters([[1.0, 2.0]]).on(Candidates([[1.0, 2.0]]))
        with pytest.raises(ValueError, match="1 or more objectives"):
            UnknownParameters.objectives(0)
        with pytest.raises(ValueError, match="none of the 2 values is within"):
            AroundEstimate(0.5, 0.1, [0.0, 1.0])
        with pytest.raises(ValueError, match="estimate is 1 finite"):
            AroundEstimate([0.5, 0.5], 0.1, [0.0, 1.0])
        with pytest.raises(ValueError, match="outside"):
            AroundEstimate(3.0, 0.1, box=[(0.0, 1.0)])

    def test_a_box_with_values_beside_it(self):
        pairs = UnknownParameters.objectives(3).join(Box([(0.0, 2.0)]))
        assert isinstance(pairs, WithValues)
        rng = np.random.default_rng(0)
        for X in (pairs.sample(20, rng), pairs.design(20, rng)):
            assert pairs.contains(X).all()
            assert {tuple(x[1:]) for x in X} == {(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)}
        assert {tuple(x[1:]) for x in pairs.design(3, rng)} == {tuple(row) for row in np.eye(3)}
        assert pairs.neighbors(pairs.sample(1, rng)[0]).shape == (2, 4)
        assert WithValues.from_dict(pairs.to_dict()) == pairs
        assert pairs.size is None
        assert len(UnknownParameters.objectives(3).join(Box([(1.0, 1.0)])).enumerate()) == 3


class TestGroups:
    def test_the_worst_member_counts(self):
        groups = Groups([4, 2, 4, 2, 9])
        family = groups.on(Candidates(np.arange(5.0)))
        assert isinstance(family, ListedSets)
        assert family.minimum(np.array([5.0, 4.0, 3.0, 2.0, 1.0])).tolist() == [3.0, 2.0, 1.0]
        assert family.answer(0)["params"] == {"group": 4}
        assert family.answer(0)["x"].tolist() == [[0.0], [2.0]]
        assert groups.members(2).tolist() == [1, 3]

    def test_refusals(self):
        with pytest.raises(ValueError, match=r"unknown group 'z'; known are \['a'\]"):
            Groups(["a"]).members("z")
        with pytest.raises(ValueError, match="2 labels for 3 candidates"):
            Groups(["a", "b"]).on(Candidates([1.0, 2.0, 3.0]))
        for label in (None, np.nan, 0.5, True):
            with pytest.raises(ValueError, match="candidate 1 has no group"):
                Groups(["a", label])
        with pytest.raises(ValueError, match="got none"):
            Groups([])
        with pytest.raises(ValueError, match="needs Candidates, not a Box"):
            Groups(["a"]).on(Box.unit(1))


class TestRegions:
    @settings(max_examples=40, deadline=None)
    @given(seeds, st.sampled_from([1.0, 2.0, 3.0, np.inf]), st.floats(0.01, 2.0))
    def test_what_is_reached_is_near_and_inside(self, seed, norm, radius):
        rng = np.random.default_rng(seed)
        box = Box([(0.0, 1.0), (-2.0, 3.0), (5.0, 5.5)])
        region = Ball(radius, norm).on(box)
        X = box.sample(6, rng)
        far = X[:, None, :] + rng.standard_normal((6, 9, 3)) * 3.0
        for Z in (region.spread(X, 20), region.project(X, far)):
            assert box.contains(Z.reshape(-1, 3)).all()
            assert (np.linalg.norm(Z - X[:, None, :], ord=norm, axis=-1) <= radius * (1 + 1e-12)).all()
        near = region.project(X, far)
        assert region.project(X, near) == pytest.approx(near, abs=1e-12)

    def test_a_kept_coordinate_stays(self):
        region = WeightedBox([0.0, 0.5]).on(Box.unit(2))
        Z = region.spread(np.array([[0.3, 0.3]]), 10)
        assert (Z[..., 0] == 0.3).all()
        assert np.ptp(Z[..., 1]) > 0.7

    def test_parameters_near_an_estimate_in_a_box(self):
        near = AroundEstimate([0.5, 1.0], [0.2, 0.4], box=[(0.0, 1.0), (0.0, 1.2)])
        pairs = near.join(Box.unit(1))
        assert pairs.dimension == 3
        region = near.on(pairs)
        Z = region.spread(np.array([[0.7]]), 40)
        assert (Z[..., 0] == 0.7).all()
        assert Z[0].min(axis=0)[1:] == pytest.approx([0.3, 0.6])
        assert Z[0].max(axis=0)[1:] == pytest.approx([0.7, 1.2])
        moved = region.project(np.array([[0.7]]), np.array([[[9.0, 9.0, 1.0]]]))
        assert moved[0, 0] == pytest.approx([0.7, 0.7, 1.0])


@pytest.mark.parametrize(
    "perturbation",
    [
        Ball(0.5),
        Ball(0.25, np.inf),
        WeightedBox([1.0, 100.0]),
        UnknownParameters([[1.0, 2.0], [3.0, 4.0]]),
        UnknownParameters(box=[(0.0, 1.0)]),
        AroundEstimate(0.5, 0.5, [0.0, 1.0], norm=np.inf),
        AroundEstimate([0.5], 0.1, box=Box.unit(1)),
        Groups(["a", "b", "a"]),
        Groups([3, 1, 3]),
    ],
    ids=repr,
)
def test_stored_and_read_back(perturbation):
    again = perturbation_from_dict(perturbation.to_dict())
    assert again == perturbation
    assert repr(again) == repr(perturbation)


def test_a_distance_is_stored_by_name():
    with pytest.raises(ValueError, match="is code"):
        perturbation_from_dict(Ball(0.5, lambda X, Z: np.zeros((len(X), len(Z)))).to_dict())
    with pytest.raises(ValueError, match="unknown perturbation 'Storm'"):
        perturbation_from_dict({"perturbation": "Storm"})
