"""What all parties agree on, in public: the domain, the shared features, and the rules of the rounds."""

from __future__ import annotations

from surefoot import Float, Space
from surefoot.federated import Agent, Coordinator, SharedFeatures
from surefoot.private import Ledger

DOMAIN = Space(penalty=Float(1e-4, 1e2, log=True), width=Float(0.05, 5.0, log=True))
FEATURES = SharedFeatures(DOMAIN.encoded_dimension, 100, lengthscale=0.2, noise=0.01, seed=2026)


def make_coordinator(folder, config):
    """The server's part: its broadcasts, the agents' newest vectors and the ledger lie in its folder."""
    noise = config["noise-multiplier"]
    budget = {"epsilon": config["epsilon"], "delta": config["delta"]}
    return Coordinator(
        FEATURES,
        agents=config["agents"],
        regions=config["regions"],
        rounds=config["rounds"],
        noise_multiplier=noise,
        sampling=config["sampling"],
        ledger=Ledger(**budget, path=folder / "ledger.jsonl") if noise else None,
        journal=folder / "broadcasts.jsonl",
        vectors=folder / "vectors.jsonl",
    )


def make_agent(number, journal, config):
    """A party's part: its journal, with its seed and every point and value it measured, never leaves its node."""
    regions = config["regions"]
    return Agent(DOMAIN, FEATURES, agent=number, regions=regions, region=number % regions, initial=3, journal=journal)
