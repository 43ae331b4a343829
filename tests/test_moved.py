"""What version 0.1 called its modules: the old names lead to the very same modules until 0.3, with a warning."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from surefoot.moved import MOVED


def test_every_old_name_leads_to_a_module():
    for old, new in MOVED.items():
        home = import_module(f"surefoot.{new}")
        sys.modules.pop(f"surefoot.{old}", None)
        with pytest.warns(DeprecationWarning, match=r"goes with version 0\.3"):
            found = import_module(f"surefoot.{old}")
        assert found is home
        assert home.__spec__.name == home.__name__ == f"surefoot.{new}"


@pytest.mark.parametrize(
    ("old", "name"),
    [
        ("surefoot.lab", "compare"),
        ("surefoot.lab.problems", "Problem"),
        ("surefoot.lab.baselines.hyperband", "Hyperband"),
        ("surefoot.lab.experiment", "Budget"),
        ("surefoot.lab.experiments.gp_ucb.regret_bound", "experiment"),
        ("surefoot.policy.gp_ucb", "GPUCB"),
        ("surefoot.policy.batch", "DBGPUCB"),
        ("surefoot.policy.entropy", "MaxValueEntropySearch"),
        ("surefoot.policy.epochs", "BOBOS"),
        ("surefoot.policy.transfer", "RMGPUCB"),
        ("surefoot.loop.errors", "NotSupported"),
    ],
)
def test_names_of_0_1_can_be_imported(old, name):
    code = f"import warnings; warnings.simplefilter('ignore'); from {old} import {name}; print({name}.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip()


def test_errors_have_one_class_under_both_names():
    from surefoot.errors import NotSupported

    sys.modules.pop("surefoot.loop.errors", None)
    with pytest.warns(DeprecationWarning, match=r"surefoot\.errors"):
        found = import_module("surefoot.loop.errors")
    assert found.NotSupported is NotSupported


def test_nothing_of_the_product_imports_the_laboratory():
    code = (
        "import sys; sys.modules['surefoot_lab'] = None\n"  # importing it fails
        "from surefoot import *\n"
        "import surefoot.cli.tune, surefoot.cli.select, surefoot.cli.attack, surefoot.cli.federate\n"
        "sys.argv = ['surefoot', 'reproduce', '--list']\n"
        "surefoot.cli.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (
        2,
        "surefoot: 'surefoot reproduce' is a command of the laboratory: pip install surefoot-lab\n",
    )


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("surefoot.attack", "Ball", "NormBall"),
        ("surefoot.attack", "Round", "PerturbationLoop"),
        ("surefoot.attack.ball", "Ball", "NormBall"),
        ("surefoot.attack.probe", "Round", "PerturbationLoop"),
        ("surefoot.attack.robustness", "Outcome", "Attempt"),
        ("surefoot.belief", "Constant", "ConstantKernel"),
        ("surefoot.belief.kernels", "Constant", "ConstantKernel"),
        ("surefoot.domain.sets", "Listed", "ListedSets"),
        ("surefoot.federated", "Fixed", "FixedProbability"),
        ("surefoot.federated.plan", "Plan", "FederationPlan"),
        ("surefoot.federated.schedules", "Fixed", "FixedProbability"),
        ("surefoot.private.ledger", "Entry", "Charge"),
        ("surefoot.report.view", "View", "RunView"),
        ("surefoot.select", "Attack", "Deletion"),
        ("surefoot.select", "Choice", "Chosen"),
        ("surefoot.select.adversary", "Attack", "Deletion"),
        ("surefoot.select.choice", "Choice", "Chosen"),
    ],
)
def test_classes_are_found_under_their_names_of_0_1(module, old, new):
    home = import_module(module)
    with pytest.warns(DeprecationWarning, match=rf"{module}\.{old} is {new} now; .* version 0\.3"):
        found = getattr(home, old)
    assert found is getattr(home, new)
    assert old not in home.__all__
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        home.Nothing  # noqa: B018
