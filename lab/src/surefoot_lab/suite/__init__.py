"""The comparison on problems of others: what runs, how it is kept, how it is judged. The rule is docs/comparison.md.

``problems`` names the problems and evaluates them, ``methods`` puts each library behind ask and tell, ``worker`` is the
process that either lives in, ``play`` drives the two, ``record`` keeps every line, ``judge`` compares, ``page`` writes.
"""
