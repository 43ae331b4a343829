"""Which point next: one file per algorithm.

>>> from surefoot.policy.ucb.gp_ucb import GPUCB
>>> GPUCB.__name__
'GPUCB'
"""

__all__: list[str] = []  # names are those of the modules; the common ones stand at the top level
