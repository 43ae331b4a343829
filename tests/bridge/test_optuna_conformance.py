"""Optuna's own conformance suite for samplers, as it is shipped."""

from __future__ import annotations

import optuna
import pytest
from optuna.testing.pytest_samplers import BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase

from surefoot.bridge.optuna import SurefootSampler

optuna.logging.set_verbosity(optuna.logging.WARNING)


class TestSurefootSampler(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self):
        return lambda: SurefootSampler(seed=0)
