"""How robust is a classifier? Train one on scikit-learn's digits, attack it as a black box, and write a report.

python examples/robustness_report.py [FOLDER]

The same from a shell, for a model of your own that you are entitled to test:
surefoot attack model.py:scores --images digits.npz --radius 0.3 --targets all
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

from surefoot.attack import BOS2, BlackBox, NormBall, attack_many
from surefoot.attack.latent_search import RandomLatentSearch
from surefoot.attack.robustness import summarize
from surefoot.attack.square_attack import SquareAttack
from surefoot.report.attack import image_grid, success_curves

digits = load_digits()
pixels, labels = digits.images / 16.0, digits.target
network = MLPClassifier((64,), random_state=0, max_iter=400).fit(pixels[:1200].reshape(1200, -1), labels[:1200])


def scores(images: np.ndarray) -> np.ndarray:
    return network.predict_proba(images.reshape(len(images), -1))


unseen = np.arange(1200, 1797)
good = unseen[scores(pixels[unseen]).argmax(axis=1) == labels[unseen]][:6]
targets = [(int(labels[i]) + 1) % 10 for i in good]
print(f"accuracy on unseen images {np.mean(scores(pixels[unseen]).argmax(axis=1) == labels[unseen]):.3f}")

BUDGET, ball = 150, NormBall(0.25)
sizes = (3, 4, 6, 8)
methods = {"BOS²": BOS2(sizes=sizes, groups=6), "square": SquareAttack(), "random": RandomLatentSearch(sizes=sizes)}
curves, kept = {}, []
for name, method in methods.items():
    model = BlackBox(scores)
    found = attack_many(model, pixels[good], targets, labels=labels[good], method=method, ball=ball, budget=BUDGET)
    summary = summarize(found, BUDGET)
    low, high = summary.interval
    curves[name], kept = summary.curve, kept or found
    share = f"{100 * summary.rate:3.0f} % ({100 * low:.0f} to {100 * high:.0f})"
    print(f"{name:7} {share}, capped mean {summary.capped_mean:.0f}")

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
folder.mkdir(parents=True, exist_ok=True)
titles = [f"{r.label} for {r.target}: {r.queries}{'' if r.success else ', failed'}" for r in kept]
image_grid([(r.image, r.adversarial) for r in kept], titles).savefig(folder / "images.png", facecolor="white")
success_curves(curves, BUDGET).savefig(folder / "curves.png", facecolor="white")
print("pictures in", folder)
