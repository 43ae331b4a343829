"""Policies by name: the shipped table, packages that are installed, and what a program defines."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import surefoot
from surefoot import Box, MissingExtra, Policy, RandomSearch, RobustReport, policy_named, policy_names
from surefoot.cli import target
from surefoot.loop import registry

MODULE = """
from surefoot import Policy, RandomSearch
from surefoot.loop.state import storable

@storable
class Pace:
    def __init__(self, steps): self.steps = steps
    def to_dict(self): return {"steps": self.steps}
    @classmethod
    def from_dict(cls, data): return cls(**data)

class Wanderer(RandomSearch):
    def __init__(self, domain, *, pace=None, **options):
        super().__init__(domain, **options)
        self.pace = pace

Rambler = Wanderer  # its former name
number = 3
"""
OFFERS = {
    "Wanderer": "wandering:Wanderer",
    "Rambler": "wandering:Rambler",
    "GPUCB": "wandering:Wanderer",
    "Number": "wandering:number",
    "Gone": "wandering:Gone",
    "Broken": "no_such_module_anywhere:Broken",
}


def install(folder, package: str, offers: dict[str, str]) -> None:
    """Put a package with entry points where an installer would."""
    made = folder / f"{package}-1.0.dist-info"
    made.mkdir()
    (made / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [f"{name} = {value}" for name, value in offers.items()]
    (made / "entry_points.txt").write_text("\n".join(["[surefoot.policies]", *lines, ""]))


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package that offers policies, until the test is over."""
    (tmp_path / "wandering.py").write_text(MODULE)
    install(tmp_path, "wandering", OFFERS)
    monkeypatch.syspath_prepend(tmp_path)
    before = dict(registry.defined)
    registry._installed.cache_clear()
    yield tmp_path
    registry.defined.clear()
    registry.defined.update(before)
    registry._installed.cache_clear()
    sys.modules.pop("wandering", None)


def test_the_table_has_every_policy_that_ships():
    """Whatever at the top level is a policy that can be made, and nothing that cannot."""
    top = {
        name
        for name in surefoot.__all__
        if inspect.isclass(kind := getattr(surefoot, name))
        and issubclass(kind, Policy)
        and not inspect.isabstract(kind)
    }
    assert top == {name for names in registry.SHIPPED.values() for name in names}
    assert top | {"Agent"} <= set(policy_names())
    for name in top:
        assert policy_named(name) is getattr(surefoot, name)


def test_nothing_is_imported_to_list_names_or_to_refuse_one(installed):
    code = (
        "import sys, surefoot; print('Wanderer' in surefoot.policy_names())\n"
        "try: surefoot.policy_named('wandering')\n"
        "except ValueError as error: print('Wanderer' in str(error))\n"
        "print([name for name in sys.modules if name.startswith(('surefoot.policy', 'surefoot.g', 'wandering'))])"
    )
    path = [str(installed), *(entry for entry in sys.path if entry)]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {path!r}\n{code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["True", "True", "[]"]


def test_an_installed_policy_is_found_by_its_name(installed):
    assert "wandering" not in sys.modules
    kind = policy_named("Wanderer")
    policy = kind(Box([(0.0, 1.0)]), seed=3)
    policy.tell(policy.ask(), 1.0)
    assert type(Policy.from_state(policy.state())) is kind
    assert Policy.from_state(policy.state()).ask() == policy.ask()
    assert target.policy_named("wanderer") is kind


def test_what_is_stored_finds_it_where_nothing_has_imported_it(installed):
    """With the types that its module registers, inside another policy, and under a former name."""
    pace = {"$type": "Pace", "value": {"steps": 3}}
    domain = {"$type": "Box", "value": Box([(0.0, 1.0)]).to_dict()}
    state = {"schema": 2, "policy": "Wanderer", "config": {"domain": domain, "pace": pace}, "seed": 1, "events": []}
    assert "wandering" not in sys.modules
    assert Policy.from_state(state).pace.steps == 3
    assert type(Policy.from_state({**state, "policy": "Rambler"})).__name__ == "Wanderer"
    outer = RobustReport(policy_named("Wanderer")(Box([(0.0, 1.0)]), seed=1), surefoot.Ball(0.1))
    again = Policy.from_state(outer.state())
    assert again.ask() == outer.ask()


def test_a_shipped_name_cannot_be_taken_over(installed):
    assert policy_named("GPUCB") is surefoot.GPUCB
    assert policy_names().count("GPUCB") == 1


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("Number", ValueError, "the policy 'Number' of wandering is none: wandering:number is 3"),
        ("Gone", MissingExtra, "the policy 'Gone' of wandering cannot be imported .AttributeError"),
        ("Broken", MissingExtra, "'Broken' of wandering cannot be imported .ModuleNotFoundError: No module named"),
        ("wandering:Wanderer", ValueError, "there is no policy 'wandering:Wanderer'; there are AddGPUCB, "),
        ("Policy", ValueError, "there is no policy 'Policy'"),
    ],
)
def test_what_cannot_be_had_is_refused_with_a_sentence(installed, name, error, message):
    with pytest.raises(error, match=message):
        policy_named(name)
    state = RandomSearch(Box([(0.0, 1.0)]), seed=0).state()
    with pytest.raises((error, TypeError)):
        Policy.from_state({**state, "policy": name})


def test_two_packages_with_one_name_are_not_guessed_between(installed):
    install(installed, "strolling", {"Wanderer": "strolling:Wanderer"})
    registry._installed.cache_clear()
    with pytest.raises(ValueError, match="several packages offer a policy 'Wanderer': strolling:Wanderer of strolling"):
        policy_named("Wanderer")
    assert policy_names().count("Wanderer") == 1


def test_the_service_knows_which_policies_its_workers_find(installed, monkeypatch):
    rows = pytest.importorskip("surefoot.serve.rows")
    policy_named("Wanderer")
    monkeypatch.setitem(registry.defined, "Own", type("Own", (RandomSearch,), {}))
    assert [rows.of_the_program(name) for name in ("Wanderer", "GPUCB", "Own")] == [False, False, True]
    monkeypatch.setitem(registry.defined, "Broken", registry.defined["Own"])  # half imported, and then it failed
    assert rows.of_the_program("Broken")
