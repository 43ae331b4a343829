"""A robust choice among numbers, whole numbers and suppliers: StableOpt in a space of named parameters.

What is built differs from what was drawn: thickness by up to 0.3 mm, the number of ribs by one; and the purchasing
department decides which of two suppliers delivers.  python examples/combined_robust_space.py
"""

import math

from surefoot import Choice, Float, Groups, Int, Space, StableOpt, WeightedBox, optimize

space = Space(
    thickness=Float(1.0, 9.0),  # mm
    ribs=Int(1, 12),
    cure=Float(0.1, 100.0, log=True),  # hours
    supplier=Choice(["north", "south", "overseas"]),
)


def strength(params: dict) -> float:
    """A strong part that must be exact, at 2 mm and 3 ribs, and a forgiving one around 6 mm and 8 ribs."""
    t, n, cure = params["thickness"], params["ribs"], math.log10(params["cure"])
    fragile = 14.0 * math.exp(-(((t - 2.0) / 0.25) ** 2) - (n - 3) ** 2 / 0.4)
    forgiving = 10.0 * math.exp(-(((t - 6.0) / 2.0) ** 2) - ((n - 8) / 3.0) ** 2)
    shift = {"north": 0.4, "south": -0.2, "overseas": 1.2}[params["supplier"]]  # each resin cures at its own pace
    return max(fragile, forgiving) - 2.0 * (cure - shift) ** 2


def worst(params: dict, *, suppliers=()) -> float:
    """The worst that can be made of a choice, on a fine lattice."""
    reach = [(0.0, 0)] if suppliers else [(0.3 * k / 5, r) for k in range(-5, 6) for r in (-1, 0, 1)]
    return min(
        strength({**params, "thickness": params["thickness"] + t, "ribs": params["ribs"] + r, "supplier": s})
        for t, r in reach
        for s in suppliers or [params["supplier"]]
    )


inexact = WeightedBox({"thickness": 0.3, "ribs": 1})  # in the user's units; what is not named is kept exactly
made = optimize(strength, space, 36, policy=StableOpt, perturbation=inexact, seed=0)
print(f"robust to inexact making: {made.params}")
print(f"  its worst case is {worst(made.params):.2f}, its lower bound {made.recommendation.lower:.2f}")

either = Groups({"supplier": {"at home": ["north", "south"]}})  # one chooses the group, somebody else the member
bought = optimize(strength, space, 36, policy=StableOpt, perturbation=either, seed=0)
print(f"robust to either supplier: {bought.params}")
print(f"  its worst case is {worst(bought.params, suppliers=['north', 'south']):.2f}")
