"""Tune a pipeline on handwritten digits, in place of RandomizedSearchCV, and give up on candidates that will not win.

python examples/search_cv.py
"""

from functools import partial

from scipy.stats import loguniform
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import RandomizedSearchCV, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from surefoot import BOBOS
from surefoot.bridge.sklearn import SurefootSearchCV

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, train_size=600, random_state=0, stratify=y)
EPOCHS, CANDIDATES = 15, 15

model = Pipeline(
    [
        ("scale", StandardScaler()),
        ("sgd", SGDClassifier(learning_rate="constant", max_iter=EPOCHS, tol=None, random_state=0)),
    ]
)
space = {
    "scale": [StandardScaler(), MinMaxScaler()],
    "sgd__eta0": loguniform(1e-6, 1.0),
    "sgd__alpha": loguniform(1e-6, 1e-1),
}
common = {"n_iter": CANDIDATES, "cv": 2, "random_state": 0}

blind = RandomizedSearchCV(model, space, **common).fit(X, y)
seeing = SurefootSearchCV(model, space, **common).fit(X, y)
brief = SurefootSearchCV(model, space, epochs=EPOCHS, policy=partial(BOBOS, bounds=(0.0, 1.0)), **common).fit(X, y)

for name, search in (("random search", blind), ("Surefoot", seeing), ("Surefoot with epochs", brief)):
    epochs = search.cv_results_["epochs"].sum() if search is brief else EPOCHS * CANDIDATES
    found, test = search.best_score_, search.score(X_test, y_test)
    print(f"{name:21} {epochs} epochs, cross-validated {found:.3f}, test {test:.3f}")
print("best:", brief.best_params_)
