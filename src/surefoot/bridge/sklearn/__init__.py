"""Surefoot inside scikit-learn: a search like ``RandomizedSearchCV`` that learns from what it has tried.

>>> from scipy.stats import loguniform
>>> from sklearn.datasets import load_iris
>>> from sklearn.svm import SVC
>>> from surefoot.bridge.sklearn import SurefootSearchCV
>>> space = {"C": loguniform(1e-2, 1e2), "gamma": loguniform(1e-4, 1.0)}
>>> search = SurefootSearchCV(SVC(), space, n_iter=8, random_state=0)
>>> bool(search.fit(*load_iris(return_X_y=True)).best_score_ > 0.95)
True

With ``epochs=`` an estimator that has ``partial_fit`` is trained epoch by epoch, and candidates that will not win are
given up on the way. :class:`RobustSelector` chooses features, or rows, that still serve when some of them are lost.
"""

from __future__ import annotations

import importlib.util

if importlib.util.find_spec("sklearn") is None:
    from surefoot.errors import MissingExtra

    raise MissingExtra("the scikit-learn bridge needs scikit-learn: pip install 'surefoot[sklearn]'")

from surefoot.bridge.sklearn.search import SurefootSearchCV
from surefoot.bridge.sklearn.selector import RobustSelector

__all__ = ["RobustSelector", "SurefootSearchCV"]
