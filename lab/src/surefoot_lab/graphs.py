"""Networks of which a few nodes must reach many: measured ones, and a random one with hubs.

A :class:`Graph` is a list of edges; :meth:`Graph.objective` is the number of nodes that a choice reaches. In all of
these networks a few nodes reach most of the others, so that plain greedy selection puts all its weight on what an
adversary removes first.

>>> import numpy as np
>>> graph = hub_graph(np.random.default_rng(0), nodes=400, hubs=4)
>>> np.sort(graph.objective().singletons())[-4:]  # a hub reaches its whole cluster
array([100., 100., 100., 100.])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.select import DominatingSet
from surefoot_lab import datasets

__all__ = ["Graph", "facebook", "hub_graph", "wiki_vote"]


@dataclass(frozen=True, eq=False)
class Graph:
    """A network.

    Attributes
    ----------
    name : str
        What it is called.
    nodes : int
        How many.
    edges : array of shape (e, 2)
        Pairs of nodes.
    direction : {"both", "out", "in"}
        Whom a node reaches, as in :class:`~surefoot.select.DominatingSet`.

    >>> Graph("path", 3, np.array([[0, 1], [1, 2]])).objective().value([1])
    3.0
    """

    name: str
    nodes: int
    edges: NDArray[np.int64]
    direction: str = "both"

    def objective(self) -> DominatingSet:
        """Return how many nodes a choice of nodes reaches, itself included."""
        return DominatingSet(self.nodes, self.edges, direction=self.direction)

    def sample(self, rng: np.random.Generator, share: float = 0.9) -> Graph:
        """Return the part of the network between some of its nodes, drawn at random and numbered in a random order.

        Selectors break ties by the lowest number, so that they are broken at random too.

        Parameters
        ----------
        rng : numpy.random.Generator
            Draws the nodes and their order.
        share : float
            How many of the nodes to keep.

        >>> path = Graph("path", 4, np.array([[0, 1], [1, 2], [2, 3]]))
        >>> path.sample(np.random.default_rng(0), share=1.0).objective().value([0, 1, 2, 3])
        4.0
        """
        if not 0.0 < share <= 1.0:
            raise ValueError(f"share must lie in (0, 1], got {share!r}")
        kept = rng.permutation(self.nodes)[: max(1, round(share * self.nodes))]
        number = np.full(self.nodes, -1, dtype=np.int64)
        number[kept] = np.arange(kept.size)
        edges = number[self.edges]
        return Graph(self.name, kept.size, edges[(edges >= 0).all(axis=1)], self.direction)


def facebook() -> Graph:
    """Return the ego-Facebook network: 4,039 people, 88,234 friendships.

    >>> from surefoot.errors import MissingData
    >>> try:
    ...     size = facebook().nodes
    ... except MissingData:
    ...     size = 4039
    >>> size
    4039
    """
    edges = datasets.load("ego_facebook")["edges"].astype(np.int64)
    return Graph("ego-Facebook", int(edges.max()) + 1, edges)


def wiki_vote() -> Graph:
    """Return the votes on Wikipedia's administrators: 7,115 people, 103,689 votes, from the voter to the candidate.

    >>> from surefoot.errors import MissingData
    >>> try:
    ...     size = wiki_vote().nodes
    ... except MissingData:
    ...     size = 7115
    >>> size
    7115
    """
    data: dict[str, Any] = datasets.load("wiki_vote")
    names, edges = np.unique(data["edges"], return_inverse=True)
    return Graph("Wiki-Vote", names.size, edges.reshape(-1, 2).astype(np.int64), "out")


def hub_graph(
    rng: np.random.Generator, *, nodes: int = 4000, hubs: int = 10, deputies: int = 8, ties: int = 10
) -> Graph:
    """Return a network of clusters, each with one hub, some deputies, and a crowd that knows a few others.

    Parameters
    ----------
    rng : numpy.random.Generator
        Draws who knows whom, and the numbers of the nodes.
    nodes, hubs : int
        Size of the network and number of its clusters, of equal sizes; a hub knows its whole cluster.
    deputies : int
        Nodes of a cluster that know from a tenth to three quarters of it.
    ties : int
        How many random nodes of its cluster each other node names; both then know each other.

    >>> graph = hub_graph(np.random.default_rng(1), nodes=200, hubs=2, deputies=1, ties=3)
    >>> np.sort(graph.objective().singletons())[-3:]
    array([ 82., 100., 100.])
    """
    size, rest = divmod(nodes, hubs)
    if hubs < 1 or rest or size < deputies + 2:
        raise ValueError(f"{nodes} nodes cannot be divided into {hubs} equal clusters with {deputies} deputies each")
    member = rng.permutation(nodes).reshape(hubs, size)  # one row per cluster, the hub first
    edges = [np.stack([np.repeat(member[:, 0], size), member.ravel()], axis=1)]
    shares = np.linspace(0.75, 0.1, deputies)
    known = rng.random((hubs, deputies, size)) < shares[:, None]
    cluster, deputy, other = np.nonzero(known)
    edges.append(np.stack([member[cluster, 1 + deputy], member[cluster, other]], axis=1))
    named = rng.integers(size, size=(hubs, size * ties))
    edges.append(np.stack([np.repeat(member, ties), np.take_along_axis(member, named, axis=1).ravel()], axis=1))
    pairs = np.sort(np.concatenate(edges), axis=1)
    pairs = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
    return Graph("hub graph", nodes, pairs.astype(np.int64))
