"""Noise: the right law, from the operating system, certified by OpenDP, and nothing that could be kept."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import opendp.prelude as dp
import pytest
from scipy import stats

from surefoot.errors import MissingExtra
from surefoot.private import ResearchNoise, SystemNoise, gaussian_scale
from surefoot.private import noise as module

SOURCES = [SystemNoise(), ResearchNoise(5)]


@pytest.mark.parametrize("source", SOURCES, ids=["system", "research"])
def test_the_laws(source):
    """Kolmogorov-Smirnov distances; a right law is refused once in 10⁶ runs."""
    values = np.linspace(-3.0, 40.0, 4000).reshape(400, 10)
    laws = [
        ((source.gaussian(values, 2.5) - values).ravel() / 2.5, stats.norm),
        ((source.laplace(values, 0.3) - values).ravel() / 0.3, stats.laplace),
        (source.normal((40, 100)).ravel(), stats.norm),
    ]
    for draws, law in laws:
        assert stats.kstest(draws, law.cdf).pvalue > 1e-6
        assert abs(stats.pearsonr(draws[1:], draws[:-1]).statistic) < 0.1
    heads = source.bernoulli(0.3, (200, 50))
    assert heads.shape == (200, 50)
    assert stats.binomtest(int(heads.sum()), 10_000, 0.3).pvalue > 1e-6
    firsts = [int(source.permutation(5)[0]) for _ in range(2000)]
    assert stats.chisquare(np.bincount(firsts, minlength=5)).pvalue > 1e-6
    assert sorted(source.permutation(1000).tolist()) == list(range(1000))


@pytest.mark.parametrize("source", SOURCES, ids=["system", "research"])
def test_each_value_has_its_own_scale(source):
    scale = np.array([0.0, 1e-9, 1.0, 1e6])
    values = np.tile([5.0, 5.0, 5.0, 5.0], (500, 1))
    noisy = source.gaussian(values, scale)
    assert (noisy[:, 0] == 5.0).all()
    spread = (noisy - values)[:, 1:].std(axis=0) / scale[1:]
    assert (np.abs(spread - 1.0) < 0.2).all()
    assert source.gaussian(3.0, 1.0).shape == ()
    assert source.gaussian(np.empty((0, 2)), 1.0).shape == (0, 2)
    assert source.normal((0, 3)).shape == source.bernoulli(0.5, (0, 3)).shape == (0, 3)
    assert source.bernoulli(1.0, 100).all()
    assert not source.bernoulli(0.0, 100).any()


def test_system_noise_is_never_the_same_twice():
    first, second = SystemNoise(), SystemNoise()
    assert (first.gaussian(np.zeros(20), 1.0) != second.gaussian(np.zeros(20), 1.0)).all()
    assert (first.normal(20) != second.normal(20)).all()
    assert (first.bernoulli(0.5, 200) != second.bernoulli(0.5, 200)).any()
    np.random.default_rng(0)  # a seed changes nothing
    assert (first.permutation(100) != first.permutation(100)).any()


def test_research_noise_is_the_same_for_the_same_seed():
    def draws(seed):
        noise = ResearchNoise(seed)
        return np.concatenate([noise.gaussian(np.zeros(3), 1.0), noise.normal(2), noise.permutation(4)])

    assert (draws(3) == draws(3)).all()
    assert (draws((3, 1)) != draws((3, 2))).any()
    assert ResearchNoise(3).simulated
    assert not SystemNoise().simulated


def test_system_noise_keeps_nothing():
    noise = SystemNoise()
    for keep in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be stored or copied"):
            keep(noise)
    with pytest.raises(AttributeError):
        noise.seed = 3
    with pytest.raises(TypeError):
        SystemNoise(3)
    assert repr(noise) == "SystemNoise()"
    assert not hasattr(noise, "__dict__")


@pytest.mark.parametrize(("cost", "slack", "sensitivity"), [(1.0, 1e-5, 1.0), (9.97, 1e-3, 50.0), (0.1, 1e-6, 0.02)])
def test_the_certified_scale_is_what_opendp_certifies(cost, slack, sensitivity):
    """For the measurement in use, its grid and a long vector included; a slightly smaller scale is not certified."""
    scale = SystemNoise.certified_scale(cost, slack, sensitivity)

    def certified(scale):
        used = module._measurement(scale, 100_000, "gaussian")
        return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(used), slack).map(sensitivity)

    assert certified(scale)[0] <= cost
    assert certified(scale * (1.0 - 1e-6))[0] > cost
    exact = gaussian_scale(cost, slack, sensitivity)
    assert exact < scale < 1.2 * exact


@pytest.mark.parametrize("source", SOURCES, ids=["system", "research"])
def test_bad_input_is_refused_without_a_word_about_the_data(source):
    with pytest.raises(ValueError, match="1 of the 2 values are not finite"):
        source.gaussian([1.0, np.nan], 1.0)
    with pytest.raises(ValueError, match=r"scale must be finite and at least 0, got -1\.0"):
        source.gaussian([1.0], -1.0)
    with pytest.raises(ValueError, match=r"a scale of shape \(3,\) does not fit values of shape \(2,\)"):
        source.laplace([1.0, 2.0], [1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match=r"probability must be between 0 and 1, got 1\.5"):
        source.bernoulli(1.5, 3)
    with pytest.raises(ValueError, match="at least 0, got -1"):
        source.permutation(-1)
    for wrong in (2.0, True, "3"):
        with pytest.raises(TypeError, match="expected a whole number, got"):
            source.permutation(wrong)
    with pytest.raises(TypeError):
        ResearchNoise(None)


def test_bad_guarantees_are_refused():
    for arguments in ((0.0, 1e-5), (1.0, 0.0), (1.0, 1e-5, 0.0), (np.inf, 1e-5)):
        with pytest.raises(ValueError, match="must"):
            SystemNoise.certified_scale(*arguments)


def test_without_opendp_the_error_says_what_to_install(monkeypatch):
    import sys

    module._opendp.cache_clear()
    module._measurement.cache_clear()
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(MissingExtra, match=r"pip install 'surefoot\[private\]'"):
        SystemNoise().gaussian([1.0], 1.0)
    assert SystemNoise().normal(3).shape == (3,)  # needs the operating system only


INTERRUPTED = """
import os, signal, threading
from surefoot.private import SystemNoise
signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts in the background ignores it
SystemNoise.certified_scale(1.0, 1e-3)  # OpenDP is loaded
threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    for step in range(100):
        SystemNoise.certified_scale(1.0 + 0.01 * (step + 1), 1e-3)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_during_a_search_for_the_scale_is_heard():
    """An exception inside OpenDP's callback would end the process by a fault, or be lost."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr
