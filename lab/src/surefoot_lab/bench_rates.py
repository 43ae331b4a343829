"""How fast a machine is at the least work there is: the floor below every measured time.

A :class:`Place` is where arrays lie: NumPy's, or a torch device. :func:`machine_rates` measures what it can do, in the
same run as everything that is compared with it: numbers copied, operations of a matrix product, numbers added and
compared. A :class:`Work` says how much of each a computation cannot do without, and how long that takes at least.

>>> rates = Rates(copy=1e9, product=1e9, product32=2e9, pairs=1e8, pairs32=2e8)
>>> Work(bytes=2e9, flops=1e9).floor(rates)
(2.0, 'memory')
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.loop.device import placer, torch_device

__all__ = ["Place", "Rates", "Work", "machine_rates", "repeated"]

REPEATS = 7  # timed runs of one computation, at most
FEWEST = 3  # and at least, unless they take too long
ENOUGH = 10.0  # seconds of timed runs after which FEWEST suffice; after three times as many, one does


@dataclass(frozen=True)
class Place:
    """Where arrays lie.

    Parameters
    ----------
    device : str, optional
        ``"cpu"`` or ``"cuda"``, of torch; None is NumPy.

    >>> Place().name, Place("cpu").name
    ('NumPy', 'torch on cpu')
    """

    device: str | None = None

    def __post_init__(self) -> None:
        if self.device not in (None, "cpu", "cuda"):
            raise ValueError(f"device must be 'cpu' or 'cuda', got {self.device!r}")
        if self.device is not None:
            torch_device(self.device)  # says what is missing

    @property
    def name(self) -> str:
        """What to call it in a table."""
        return "NumPy" if self.device is None else f"torch on {self.device}"

    @property
    def host(self) -> bool:
        """Whether the processor does the work."""
        return self.device in (None, "cpu")

    @cached_property
    def put(self) -> Callable[[Any], Any]:
        """What brings a NumPy array there."""
        return placer(self.device)

    @cached_property
    def cuda(self) -> Any:
        """``torch.cuda`` if that is where it is, else None."""
        return None if self.host else torch_device(str(self.device))[0].cuda

    def wait(self) -> None:
        """Let the device finish what it was given: a launch is not the work."""
        if self.cuda is not None:
            self.cuda.synchronize()

    def release(self) -> None:
        """Give back the memory that torch keeps for later."""
        if self.cuda is not None:
            self.cuda.empty_cache()

    def free(self) -> float:
        """Return how many bytes of memory are free, infinite if nobody knows."""
        if self.cuda is not None:
            return float(self.cuda.mem_get_info()[0])
        try:
            with open("/proc/meminfo", encoding="ascii") as lines:
                sizes = dict(line.split(":", 1) for line in lines)
            return 1024.0 * int(sizes["MemAvailable"].split()[0])
        except (OSError, KeyError, ValueError):
            return np.inf

    def describe(self) -> dict[str, Any]:
        """Return what does the work: its name, and how many threads it may use."""
        cores = os.cpu_count()
        if self.device is None:
            return {"name": "processor", "cores": cores, "threads": os.environ.get("OMP_NUM_THREADS") or cores}
        if self.cuda is not None:
            return {"name": self.cuda.get_device_name()}
        return {"name": "processor", "cores": cores, "threads": torch_device(self.device)[0].get_num_threads()}


@dataclass(frozen=True)
class Rates:
    """What a place can do in a second.

    Parameters
    ----------
    copy : float
        Bytes read and bytes written by a copy, added up.
    product, product32 : float
        Additions and multiplications of a matrix product, in ``float64`` and ``float32``.
    pairs, pairs32 : float
        Sums that are made of two small tables and compared with what was the largest, in array operations.

    >>> Rates(1e9, 1e9, 1e9, 1e9, 1e9).copy
    1000000000.0
    """

    copy: float
    product: float
    product32: float
    pairs: float
    pairs32: float

    def to_dict(self) -> dict[str, float]:
        """Return the rates by name."""
        return asdict(self)


@dataclass(frozen=True)
class Work:
    """What a computation cannot do without.

    Parameters
    ----------
    bytes : float
        Bytes that must pass through memory at least once.
    flops, flops32 : float
        Operations of its matrix products, in ``float64`` and ``float32``.
    pairs, pairs32 : float
        Numbers that are added and compared.

    >>> Work(pairs32=1e6).floor(Rates(1.0, 1.0, 1.0, 1.0, pairs32=1e6))
    (1.0, 'element-wise')
    """

    bytes: float = 0.0
    flops: float = 0.0
    flops32: float = 0.0
    pairs: float = 0.0
    pairs32: float = 0.0

    def floor(self, rates: Rates) -> tuple[float, str]:
        """Return the seconds of the longest of them, as if the others were hidden behind it, and which one it is."""
        seconds = {
            "memory": self.bytes / rates.copy,
            "matrix product": self.flops / rates.product + self.flops32 / rates.product32,
            "element-wise": self.pairs / rates.pairs + self.pairs32 / rates.pairs32,
        }
        longest = max(seconds, key=lambda name: seconds[name])
        return seconds[longest], longest


def repeated(
    work: Callable[[], Any], place: Place | None = None, *, repeats: int = REPEATS, deadline: float = np.inf
) -> NDArray[np.float64]:
    """Return the seconds of several runs; one more, which the caller has made before, warms up.

    Parameters
    ----------
    work : callable
        What is timed.
    place : Place, optional
        Where it works: the clock stops when it has finished there.
    repeats : int
        How many runs, if they are short.
    deadline : float
        A ``time.perf_counter()`` after which only the run that is under way is finished.

    >>> repeated(lambda: None, repeats=4).shape
    (4,)
    """
    where = place or Place()
    seconds: list[float] = []
    while len(seconds) < repeats:
        where.wait()
        start = time.perf_counter()
        work()
        where.wait()
        seconds.append(time.perf_counter() - start)
        spent, fewest = sum(seconds), min(FEWEST, repeats)
        late = time.perf_counter() >= deadline
        if late or spent > 3.0 * ENOUGH or (spent > ENOUGH and len(seconds) >= fewest):
            break
    return np.array(seconds)


def machine_rates(place: Place, *, scale: float = 1.0) -> Rates:
    """Measure what a place can do; the fastest of several runs, since this is a floor.

    Parameters
    ----------
    place : Place
        NumPy, or a torch device.
    scale : float
        Of the sizes; 1 takes a second or two.

    >>> machine_rates(Place(), scale=0.01).copy > 0
    True
    """
    copied = max(1, int(scale * (2**24 if place.host else 2**27)))
    side = max(8, int(scale ** (1.0 / 3.0) * (1024 if place.host else 8192)))
    # Blocks of a processor stay in its cache, as those of the computations do; a device gets few large ones.
    edge = max(8, int(min(scale, 1.0) ** 0.5 * (2**8 if place.host else 2**13)))

    def fastest(work: Callable[[], Any]) -> float:
        work()
        return float(repeated(work, place, repeats=5).min())

    def copy() -> float:
        source, target = place.put(np.ones(copied)), place.put(np.zeros(copied))
        work = (lambda: np.copyto(target, source)) if place.device is None else (lambda: target.copy_(source))
        return 16.0 * copied / fastest(work)

    def product(dtype: type) -> float:
        A = place.put(np.random.default_rng(0).random((side, side)).astype(dtype))
        return 2.0 * side**3 / fastest(lambda: A @ A)

    def pairs(dtype: type) -> float:
        xp: Any = np if place.device is None else torch_device(place.device)[0]
        # Sums of small tables are written, not read.
        shapes = (edge, 1), (1, edge), (edge, edge), (edge, edge)
        a, b, most, room = (place.put(np.full(shape, float(i), dtype=dtype)) for i, shape in enumerate(shapes))
        rounds = 64 if place.host else 4

        def work() -> None:
            for _ in range(rounds):
                xp.add(a, b, out=room)
                xp.maximum(most, room, out=most)

        return rounds * edge**2 / fastest(work)

    wide, narrow = np.float64, np.float32
    rates = Rates(copy(), product(wide), product(narrow), pairs(wide), pairs(narrow))
    place.release()
    return rates
