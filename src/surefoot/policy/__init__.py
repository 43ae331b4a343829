"""Which point next: one file per algorithm.

>>> from surefoot.policy.gp_ucb import GPUCB
>>> GPUCB.__name__
'GPUCB'
"""
