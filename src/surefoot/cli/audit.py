"""``surefoot audit``: attack every mechanism that is shipped, and see whether its claim survives.

Each mechanism is calibrated to (ε, δ) and run many times on two neighboring inputs (:mod:`surefoot.private.audit`);
where it releases a matrix, the known-row reconstruction is tried on it as well.

>>> sorted(BROKEN)
['half-noise']
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from surefoot.cli.options import offer, out, picture, quiet
from surefoot.cli.terminal import say
from surefoot.errors import MissingExtra
from surefoot.loop.durable import write_atomically
from surefoot.private.accounting import gaussian_scale
from surefoot.private.audit import AUDITS, Audit, AuditCase, reconstruct
from surefoot.private.audit import audit as attack
from surefoot.private.noise import Noise, ResearchNoise, SystemNoise
from surefoot.report.audit import audits as picture_of
from surefoot.report.theme import color

__all__ = ["BROKEN", "Finding", "audit", "available", "half_noise_case"]

Build = Callable[[float, float], AuditCase]
_HOMES = ("surefoot.private.cases", "surefoot.federated.aggregate")  # modules that enter their cases


def half_noise_case(epsilon: float, delta: float) -> AuditCase:
    """Return a mechanism that adds half the noise it should: an audit that lets it pass is worth nothing.

    >>> half_noise_case(1.0, 1e-3).epsilon
    1.0
    """
    scale = gaussian_scale(epsilon, delta) / 2.0
    return AuditCase(
        "a Gaussian mechanism with half the noise",
        lambda x, noise, trials: noise.gaussian(np.full(trials, x), scale),
        0.0,
        1.0,
        epsilon,
        delta,
        score=lambda releases: releases,
        note="one number changed by the sensitivity",
    )


BROKEN: dict[str, Build] = {"half-noise": half_noise_case}
"""Mechanisms that are wrong on purpose."""


def available(*, broken: bool = False) -> dict[str, Build]:
    """Return everything that can be audited, by name.

    >>> "gaussian" in available(), "half-noise" in available(), "half-noise" in available(broken=True)
    (True, False, True)
    """
    for home in _HOMES:
        import_module(home)
    return {**AUDITS, **(BROKEN if broken else {})}


@dataclass(frozen=True, eq=False)
class Finding:
    """What was found out about one mechanism.

    Attributes
    ----------
    name : str
        As in :func:`available`.
    case : AuditCase
        What was attacked.
    audit : Audit
        The lower bound on its ε.
    error : float or None
        Largest error of the reconstructed rows relative to the spread of the true ones; None where it releases no rows.
    works : bool or None
        Whether the attacker can tell that the reconstruction is right.

    >>> nothing = attack(lambda x, noise, trials: noise.normal(trials), 0, 1, delta=0.1, trials=500)
    >>> Finding("half-noise", half_noise_case(1.0, 1e-3), nothing).verdict
    'no claim'
    """

    name: str
    case: AuditCase
    audit: Audit
    error: float | None = None
    works: bool | None = None

    @property
    def verdict(self) -> str:
        """What became of the claim."""
        return "no claim" if self.audit.claim is None else "refuted" if self.audit.refuted else "not refuted"


@click.argument("names", nargs=-1, metavar="[MECHANISM ...]", help="Names, or how they start; default all.")
@click.option("--epsilon", type=float, metavar="E", help="What mechanisms are calibrated to.")
@click.option("--delta", type=float, metavar="D", help="And their δ.")
@click.option("--trials", type=int, metavar="N", help="Releases of each of two neighboring inputs.")
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Of the noise, so that it can be repeated.")
@click.option("--system", is_flag=True, help="Draw noise as in earnest, by OpenDP; slow, and not repeatable.")
@click.option("--broken", is_flag=True, help="Also audit a mechanism with half the noise: it must be refuted.")
@click.option("--list", "listing", is_flag=True, help="Print the names and stop.")
@out
@picture
@quiet
def audit(
    names: Sequence[str] = (),
    *,
    epsilon: float = 1.0,
    delta: float = 1e-3,
    trials: int = 100_000,
    seed: int = 0,
    system: bool = False,
    broken: bool = False,
    listing: bool = False,
    out: str | os.PathLike[str] = "surefoot-audit",
    picture: bool = True,
    quiet: bool = False,
    console: Console | None = None,
) -> list[Finding]:
    """Attack mechanisms, print a table, write it and a picture, and return what was found.

    Its arguments are the options; no names, or "all", are all of :func:`available`.

    >>> import io, tempfile
    >>> found = audit(["half"], broken=True, trials=20_000, picture=False,
    ...               out=tempfile.mkdtemp(), console=Console(file=io.StringIO()))
    >>> [(finding.name, finding.verdict) for finding in found]
    [('half-noise', 'refuted')]
    """
    screen = console or Console()
    if listing:
        for name in available(broken=broken):
            say(screen, name)
        return []
    if not 0.0 < epsilon < math.inf:
        raise ValueError(f"epsilon must be positive and finite, got {epsilon}")
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta must lie strictly between 0 and 1, got {delta}")
    if trials < 1000:
        raise ValueError(f"trials must be at least 1000, got {trials}")
    chosen = _chosen(names, available(broken=broken))
    found = []
    for number, (name, build) in enumerate(chosen.items()):
        with screen.status(name) if screen.is_terminal and not quiet else nullcontext():
            found.append(_attack(name, build(epsilon, delta), trials, (seed, number), system))
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    facts = [_facts(finding) for finding in found]
    write_atomically(folder / "audit.json", json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
    files = [folder / "audit.json"]
    if picture:
        try:
            picture_of({finding.name: finding.audit for finding in found}).savefig(
                folder / "audit.png", facecolor=color("paper")
            )
            files.append(folder / "audit.png")
        except MissingExtra as error:
            if not quiet:
                say(screen, f"no picture: {error}")
    if quiet:
        say(screen, json.dumps(facts, ensure_ascii=False))
    else:
        _tell(screen, found, files)
    return found


def _chosen(names: Sequence[str], known: Mapping[str, Build]) -> dict[str, Build]:
    if not names or "all" in names:
        return dict(known)
    chosen = {}
    for name in names:
        fitting = [name] if name in known else [other for other in known if other.startswith(name)]
        if not fitting:
            raise ValueError(f"there is no mechanism {name!r}; there are: {'; '.join(known)}")
        chosen.update({each: known[each] for each in fitting})
    return chosen


def _attack(name: str, case: AuditCase, trials: int, seed: tuple[int, int], system: bool) -> Finding:
    noise: Noise = SystemNoise() if system else ResearchNoise(seed)
    found = attack(
        case.release, case.one, case.two, delta=case.delta, claim=case.epsilon, trials=trials, score=case.score,
        noise=noise,
    )  # fmt: skip
    if case.matrices is None:
        return Finding(name, case, found)
    released, rows = case.matrices(noise)
    # Two rows more than the attack needs, so that the attacker can see whether it worked.
    known = np.random.default_rng(seed).choice(len(rows), size=min(len(rows), rows.shape[1] + 3), replace=False)
    if released.shape[1] < rows.shape[1] or len(known) <= rows.shape[1]:
        return Finding(name, case, found)
    guess = reconstruct(released, rows[known], known)
    hidden = np.setdiff1d(np.arange(len(rows)), known)
    spread = float(np.abs(rows - rows.mean(axis=0)).max())
    return Finding(name, case, found, float(np.abs(guess.rows - rows)[hidden].max()) / spread, guess.works)


def _facts(finding: Finding) -> dict[str, Any]:
    bound = finding.audit.bound
    return {
        "mechanism": finding.name,
        "title": finding.case.name,
        "told_apart": finding.case.note,
        "claim": finding.audit.claim,
        "delta": finding.audit.delta,
        "lower_bound": bound.epsilon,
        "confidence": bound.confidence,
        "trials": finding.audit.trials,
        "rates": list(bound.rates),
        "verdict": finding.verdict,
        "reconstruction_error": finding.error,
        "reconstruction_works": finding.works,
    }


def _tell(screen: Console, found: Sequence[Finding], files: Sequence[Path]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("mechanism", "claim ε", "ε at least", "claim", "known rows reveal"):
        table.add_column(heading, justify="right" if "ε" in heading else "left", overflow="fold")
    looks = {"refuted": "bold red", "not refuted": "green", "no claim": "yellow"}
    for finding in found:
        claim = "none" if finding.audit.claim is None else f"{finding.audit.claim:.4g}"
        table.add_row(
            Text(finding.name),
            claim,
            f"{finding.audit.bound.epsilon:.3f}",
            Text(finding.verdict, style=looks[finding.verdict]),
            _revealed(finding),
        )
    screen.print(table)
    first = found[0].audit
    confidence = f"{100.0 * first.bound.confidence:g} % for each mechanism"
    say(screen, f"δ = {first.delta:g}, {first.trials} releases of each input, confidence {confidence}")
    for file in files:
        say(screen, str(file))


def _revealed(finding: Finding) -> Text:
    if finding.error is None:
        return Text("–")
    if finding.works:
        return Text(f"all rows (error {finding.error:.0e})", style="bold red")
    return Text(f"nothing (error {finding.error:.2g})")


def _status(found: Sequence[Finding]) -> int:
    return int(any(finding.verdict == "refuted" and finding.name not in BROKEN for finding in found))


command = offer(
    audit,
    """Find out how much privacy every mechanism loses at least, and whether known rows reveal the others.

    Each mechanism is run on two neighboring inputs. The event that tells them apart best gives a lower bound on epsilon
    with a confidence of 99.9 %; a claim below the bound is refuted, and the exit status is then 1 (mechanisms that are
    broken on purpose do not count). A claim that is not refuted is not thereby proved.

    \b
    Examples:
      surefoot audit
      surefoot audit gaussian \\
        --epsilon 3 --delta 1e-3
      surefoot audit all --broken \\
        --trials 1000000
    """,
    status=_status,
)
