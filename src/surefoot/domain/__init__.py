"""Where a point may lie: boxes, finite sets of candidates, spaces of named parameters; and where it may be moved to."""

from surefoot.domain.base import Domain, domain_from_dict
from surefoot.domain.box import Box
from surefoot.domain.candidates import Candidates
from surefoot.domain.groups import Groups
from surefoot.domain.moves import Dives, GraphPaths, Moves, MoveTable
from surefoot.domain.parameter import Choice, Float, Int, Parameter
from surefoot.domain.paths import Paths
from surefoot.domain.perturbation import Ball, Perturbation, WeightedBox
from surefoot.domain.space import Space
from surefoot.domain.unknown import AroundEstimate, UnknownParameters

__all__ = [
    "AroundEstimate",
    "Ball",
    "Box",
    "Candidates",
    "Choice",
    "Dives",
    "Domain",
    "Float",
    "GraphPaths",
    "Groups",
    "Int",
    "MoveTable",
    "Moves",
    "Parameter",
    "Paths",
    "Perturbation",
    "Space",
    "UnknownParameters",
    "WeightedBox",
    "domain_from_dict",
]
