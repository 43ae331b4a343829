"""The modeler: the party that optimizes over a release, without ever seeing the data behind it.

>>> import numpy as np
>>> from surefoot.private import Curator, GaussianRelease
>>> table = np.random.default_rng(0).random((60, 2))
>>> mechanism = GaussianRelease(epsilon=10.0, delta=1e-5, bounds=[(0.0, 1.0)] * 2)
>>> curator = Curator(table, lambda row: -float(((row - 0.4) ** 2).sum()), mechanism, asks=12)
>>> modeler = Modeler(curator.release(), seed=0)
>>> close = modeler.run(curator.answer)
>>> curator.close(close)
>>> curator.state, len(modeler.policy.history)
('closed', 12)

A modeler *has* a policy on :class:`~surefoot.domain.Candidates`, any policy. What it adds is the belief: released rows
carry noise of a known size, so covariances are those of :class:`~surefoot.belief.noisy_inputs.NoisyInputs`, whose
hyper-parameters are fitted to rows and answers as usual. That is post-processing of what was released: it costs no
privacy, and it repairs whatever the mechanism did to the scale of the rows.

Reference: Kharkovskii, Dai & Low 2020, Algorithm 2, which is ``policy=GPUCB`` on a release of
:class:`~surefoot.private.projection.PublishedProjection` with the hyper-parameters of the original rows. Its lines are
those of Algorithm 3 of Kharkovskii's thesis (2020).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, cast, overload

from surefoot.belief.gp import GP
from surefoot.belief.kernels import SE
from surefoot.belief.noisy_inputs import NoisyInputs
from surefoot.domain import Candidates
from surefoot.errors import BudgetSpent, Exhausted, NoData, NotSupported
from surefoot.experimental import experimental
from surefoot.loop.journal import dumps, loads, write_atomically
from surefoot.loop.policy import Policy
from surefoot.loop.record import load
from surefoot.loop.types import LevelSet, Outcome, Query, Recommendation
from surefoot.policy.ucb.gp_ucb import GPUCB
from surefoot.private.messages import Answer, Ask, Close, Release

__all__ = ["Modeler", "noise_aware"]


def noise_aware(gp: GP | None, release: Release) -> GP:
    """Return a belief about a release: the given one, or an automatic one, with covariances that know of the noise.

    Parameters
    ----------
    gp : GP, optional
        A belief about functions of the true rows, with an ``SE`` kernel; None: one that is fitted to the answers.
    release : Release
        Its noise, of the rows and of the answers, enters the belief.

    >>> import numpy as np
    >>> release = Release("k3", np.zeros((2, 1)), noise=0.5)
    >>> noise_aware(GP(SE(1.0)), release).kernel
    NoisyInputs(lengthscale=1.0, variance=1.0, scale=0.5)
    """
    if gp is None:
        automatic = GP.automatic(Candidates(release.rows), kernel=SE())
        return _blurred(automatic, release.noise) if release.noise else automatic
    known = replace(gp, noise=gp.noise + release.output_noise) if release.output_noise else gp
    return _blurred(known, release.noise) if release.noise else known


def _blurred(gp: GP, noise: float) -> GP:
    if gp.members or type(gp.kernel) is not SE:
        raise NotSupported(
            "a belief about noisy rows needs an SE kernel, the one whose blurred covariance is known in closed form; "
            f"got {gp.kernel!r} (noise_aware=False uses it as it is)"
        )
    return replace(gp, kernel=NoisyInputs.around(gp.kernel, noise))


@experimental
class Modeler:
    """Runs a policy over a release and speaks to a curator in messages.

    Parameters
    ----------
    release : Release
        What the curator released.
    policy : type of Policy
        Which policy to run on the rows.
    gp : GP, optional
        A belief about functions of the *true* rows; None: fitted.
    noise_aware : bool
        Whether the belief takes the noise of the rows into account; False is for comparison.
    path : path, optional
        A folder in which the release and every event are durable; an existing one of the same run is continued.
    **options
        Of the policy: ``seed``, ``width``, ``initial``, ...

    >>> import numpy as np
    >>> from surefoot import RandomSearch
    >>> Modeler(Release("k3", np.eye(3), asks=2), RandomSearch, seed=0).ask().run
    'k3'
    """

    def __init__(
        self,
        release: Release,
        policy: type[Policy] = GPUCB,
        *,
        gp: GP | None = None,
        noise_aware: bool = True,
        path: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(release, Release):
            raise TypeError(f"release must be a Release, got {type(release).__name__}")
        if not (isinstance(policy, type) and issubclass(policy, Policy)):
            raise TypeError(f"policy must be a class of policies, such as GPUCB, got {policy!r}")
        if path is not None:
            options["journal"] = _stored(release, Path(path))
        options.setdefault("repeats", release.repeats)
        if "gp" in policy.__signature__.parameters:
            options["gp"] = _belief(gp, release, noise_aware)
        elif gp is not None:
            raise NotSupported(f"{policy.__name__} has no belief: leave gp out")
        self.release = release
        self.policy: Policy = policy(Candidates(release.rows), **options)
        if (reason := self._unfit()) is not None:
            self.policy.close()
            raise NotSupported(f"a curator answers with the value of one row: {policy.__name__} {reason}")

    def _unfit(self) -> str | None:
        """Why an ask for a row, and its answer, cannot carry what the policy wants; None where they can."""
        if self.policy.fidelities:
            return "chooses a fidelity too"
        if self.policy.steps:
            return "follows runs step by step"
        if self.policy.domain != Candidates(self.release.rows):
            return "measures rows beside unknown parameters"
        return None

    @classmethod
    def load(cls, path: str | os.PathLike[str], **again: Any) -> Self:
        """Go on from a folder; configuration that is code is passed again, by name.

        >>> import tempfile
        >>> import numpy as np
        >>> folder = tempfile.mkdtemp()
        >>> modeler = Modeler(Release("k3", np.eye(3), asks=2), path=folder, seed=0)
        >>> ask = modeler.ask()
        >>> modeler.stop()
        >>> Modeler.load(folder).ask() == ask
        True
        """
        folder = Path(path)
        release = Release.from_wire(loads((folder / "release.json").read_text(encoding="utf-8")))
        self = cls.__new__(cls)
        self.release = release
        self.policy = load(folder / "policy.jsonl", domain=Candidates(release.rows), **again)
        return self

    @overload
    def ask(self, n: None = None) -> Ask: ...
    @overload
    def ask(self, n: int) -> list[Ask]: ...
    def ask(self, n: int | None = None) -> Ask | list[Ask]:
        """Return the next ask, or n of them. Those without an answer come first, so that a lost one is sent again.

        Raises
        ------
        BudgetSpent
            The curator answers no more.
        """
        waiting = self.policy.pending
        wanted = 1 if n is None else n
        if not isinstance(wanted, int) or wanted < 1:
            raise ValueError(f"ask(n) needs a positive whole number, got {n!r}")
        new = wanted - len(waiting)
        if new > 0 and len(self.policy.queries) + new > self.release.asks:
            raise BudgetSpent(f"the curator answers {self.release.asks} asks; {len(self.policy.queries)} were made")
        if new > 0:
            # Lines 3 and 4, where the policy is GP-UCB: z_t = argmax μ̃_t(z) + β_t^(1/2) σ̃_t(z)
            waiting = [*waiting, *(self.policy.ask(new) if new > 1 else [self.policy.ask()])]
        asks = [self._message(query) for query in waiting[:wanted]]
        return asks[0] if n is None else asks

    def tell(self, answer: Answer) -> None:
        """Take an answer in; the same one again changes nothing."""
        if answer.run != self.release.run:
            raise ValueError(f"this is run {self.release.run!r}, the answer is for {answer.run!r}")
        self.policy.tell(answer.step, Outcome(answer.value))

    def close(self) -> Close:
        """Return the message that names the row to use, by the policy's own rule.

        It names none if nothing was measured, or where the answer is a set of rows: that one stays with the modeler.
        """
        try:
            answer = self.recommend()
        except NoData:
            return Close(self.release.run, None)
        return Close(self.release.run, answer.index if isinstance(answer, Recommendation) else None)

    def recommend(self) -> Recommendation | LevelSet:
        """Return the policy's answer: the row to use and what to expect of it, or the rows above a level."""
        return cast("Recommendation | LevelSet", self.policy.recommend())

    def run(self, answer: Callable[[Ask], Answer]) -> Close:
        """Ask until the curator answers no more, or no row is left to ask for, and return the closing message."""
        while self.policy.pending or len(self.policy.queries) < self.release.asks:
            try:
                ask = self.ask()
            except Exhausted:  # equal rows may count as one: there may be fewer of them than asks
                break
            self.tell(answer(ask))  # lines 5 and 6: query the curator for y_t, update μ̃ and σ̃
        return self.close()

    def stop(self) -> None:
        """Let go of the folder, so that another process may go on."""
        self.policy.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"Modeler({self.release!r}, {type(self.policy).__name__}, {len(self.policy.history)} answers)"

    def _message(self, query: Query) -> Ask:
        return Ask(self.release.run, query.id, cast(int, query.index))


def _belief(gp: GP | None, release: Release, aware: bool) -> GP | None:
    if aware:
        return noise_aware(gp, release)
    return GP.automatic(Candidates(release.rows), kernel=SE()) if gp is None else gp


def _stored(release: Release, folder: Path) -> Path:
    """Keep the release in the folder, and return where the policy's journal goes."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "release.json"
    if file.exists():
        found: Mapping[str, Any] = loads(file.read_text(encoding="utf-8"))
        if Release.from_wire(found) != release:
            raise ValueError(f"{folder} belongs to run {found.get('run')!r}; use another folder")
    else:
        write_atomically(file, dumps(release.to_wire()))
    return folder / "policy.jsonl"
