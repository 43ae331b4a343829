"""Where a point may lie: boxes, finite sets of candidates, and spaces of named parameters."""

from surefoot.domain.base import Domain, domain_from_dict
from surefoot.domain.box import Box
from surefoot.domain.candidates import Candidates
from surefoot.domain.parameter import Choice, Float, Int, Parameter
from surefoot.domain.space import Space

__all__ = ["Box", "Candidates", "Choice", "Domain", "Float", "Int", "Parameter", "Space", "domain_from_dict"]
