"""The parsimonious attack in a game: against a defender that learns, against a random one, and round by round.

The defender sees the image that it is sent, so it knows the attacker's move before its own: it takes the latent point
of that image for the attacker's action and answers it, x₂ = argmax α₂(x₁, x₂), which is GP-UCB with a context. Its
payoff is minus the objective that the attack raises.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import numpy as np
from numpy.typing import NDArray

from surefoot.attack.ball import NormBall
from surefoot.attack.probe import Finished, Probe, log_odds
from surefoot.belief.gp import GP
from surefoot.belief.posterior import Posterior
from surefoot.domain import Box, Candidates
from surefoot.loop.streams import stream
from surefoot.loop.widths import Logarithmic
from surefoot_lab.adversarial_game import ImageGame
from surefoot_lab.baselines.parsimonious import ParsimoniousAttack

Array = NDArray[np.float64]

FIRST = 5  # random defenses before the belief takes over
GROWTH = 1.25  # hyper-parameters are fitted again when there are so many times more rounds


class ContextualDefender:
    """Answers each image that it is sent, and learns from what became of it.

    Parameters
    ----------
    duel : ImageGame
        The image, the autoencoder and the classifier, with actions on a grid.
    seed : int
        Draws the first actions and the fits.
    """

    def __init__(self, duel: ImageGame, seed: int) -> None:
        if not isinstance(duel.actions, Candidates):
            raise TypeError(f"this defender chooses from a grid of actions, got {duel.actions!r}")
        self.duel, self.seed, self.grid = duel, seed, duel.actions.points
        self.X, self.y = np.empty((0, 2 * duel.latent.dimension)), np.empty(0)
        self.width = Logarithmic(0.5)
        # Where latent points of images lie: the prior of an autoencoder is a standard normal distribution.
        sides = [(-3.0, 3.0)] * duel.latent.dimension + list(zip(duel.actions.lower, duel.actions.upper, strict=True))
        self.prior = GP.automatic(Box(sides))
        self.fitted_at = 0
        self.posterior: Posterior | None = None

    def answer(self, image: Array) -> Array:
        """Return the image x″ that is shown to the classifier in the place of a received one."""
        context = self.duel.latent.encode(image[None])[0]
        n = len(self.y)
        if n < FIRST:
            action = self.grid[int(stream(self.seed, "first", n).integers(len(self.grid)))]
        else:
            belief = self._belief()
            joint = np.column_stack([np.tile(context, (len(self.grid), 1)), self.grid])
            mean, std = belief.predict(joint)
            action = self.grid[int(np.argmax(mean + self.width(n, dimension=joint.shape[1]) * std))]
        self._asked = np.concatenate([context, action])
        return self.duel.defended(image[None], action[None])[0]

    def learn(self, objective: float) -> None:
        """Learn what the attack made of the last answer."""
        self.X, self.y = np.vstack([self.X, self._asked]), np.append(self.y, -objective)
        if self.posterior is not None:
            self.posterior.append(self._asked, -objective)

    def _belief(self) -> Posterior:
        n = len(self.y)
        if self.posterior is None or n >= GROWTH * self.fitted_at:
            fitted = self.prior.fit(self.X, self.y, rng=stream(self.seed, "fit", n))
            self.posterior, self.fitted_at = fitted.condition(self.X, self.y), n
        return self.posterior


class _Unending(Probe):
    """A probe that a success does not end: rounds are counted to the last."""

    def _ask(self, images: Array) -> Generator[Array, Array, Array]:
        logs = yield images
        self.spent += len(images)
        y, _ = log_odds(logs, self.label or 0, self.target)
        self.trace += y.tolist()
        return y


def rounds_of(
    duel: ImageGame, radius: float, budget: int, seed: int, defender: ContextualDefender | NDArray[np.float64] | None,
    *, until_success: bool,
) -> Iterator[tuple[float, bool]]:  # fmt: skip
    """Let the parsimonious attack play round by round and yield its score and whether it has won each of them.

    ``defender`` learns, is a list of actions (budget, d) that are played in turn, or is None. With ``until_success``
    the attack ends with its first success.
    """
    kind = Probe if until_success else _Unending
    probe = kind(duel.image[None], NormBall(radius), (0.0, 1.0), budget, duel.label, None, seed)
    search = ParsimoniousAttack(batch=1).search(probe)
    try:
        image = next(search)
        for number in range(budget):
            received = image[0, 0]
            if isinstance(defender, ContextualDefender):
                shown = defender.answer(received)
            elif defender is not None:
                shown = duel.defended(received[None], defender[number][None])[0]
            else:
                shown = received
            p = np.asarray(duel.probabilities(shown[None]), dtype=np.float64)
            logs = np.log(p + 1e-30)
            objective, won = log_odds(logs, duel.label, None)
            if isinstance(defender, ContextualDefender):
                defender.learn(float(objective[0]))
            yield float(np.delete(p, duel.label, axis=1).max()), bool(won[0])
            image = search.send(logs)
    except Finished:
        return
