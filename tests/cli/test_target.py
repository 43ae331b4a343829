from __future__ import annotations

import sys

import pytest

from surefoot import BOBOS, GPUCB, Choice, Float, Int, RandomSearch, Space
from surefoot.cli.target import find, options_from, policy_named, space_from


@pytest.fixture(autouse=True)
def clean_imports(monkeypatch):
    """What a test imports is forgotten after it."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


# -- objectives ------------------------------------------------------------------------------------------------------


def test_modules_of_the_working_directory_and_files_anywhere(tmp_path, monkeypatch):
    (tmp_path / "beside.py").write_text("FACTOR = 3")
    (tmp_path / "mine.py").write_text(
        "from beside import FACTOR\nclass C:\n    @staticmethod\n    def f(p): return FACTOR"
    )
    assert find(f"{tmp_path}/mine.py:C.f")({}) == 3
    package = tmp_path / "packed"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "inner.py").write_text("def g(p): return 7")
    monkeypatch.chdir(tmp_path)
    assert find("packed.inner:g")({}) == 7
    assert find("./packed/inner.py:g")({}) == 7


def test_a_file_is_read_once_and_does_not_replace_a_module_of_its_name(tmp_path):
    (tmp_path / "json.py").write_text("def f(p): return 1")
    (tmp_path / "once.py").write_text("def f(p): return 1")
    import json

    assert find(f"{tmp_path}/json.py:f")({}) == 1
    assert sys.modules["json"] is json
    assert find(f"{tmp_path}/once.py:f") is find(f"{tmp_path}/once.py:f")


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("mine.py", "expected MODULE:NAME or FILE.py:NAME, got 'mine.py'"),
        (":f", "got ':f'"),
        ("mine.py:", "got 'mine.py:'"),
        ("absent.py:f", "there is no file absent.py"),
        ("./notes.txt:f", r"importing ./notes.txt failed: ImportError: notes.txt is not a Python file"),
        ("no.such.module:f", "there is no module 'no.such.module'"),
        ("mine.py:trian", "has no 'trian'; did you mean 'train'"),
        ("mine:zzzz", "mine has no 'zzzz'"),
        ("broken.py:f", "importing broken.py failed: NameError: name 'undefined' is not defined .*--debug"),
        ("broken:f", "importing broken failed: NameError"),
        ("unclosed.py:f", "importing unclosed.py failed: SyntaxError"),
        ("exits.py:f", "importing exits.py failed: SystemExit"),
        ("needs.py:f", "importing needs.py failed: ModuleNotFoundError: No module named 'not_installed'"),
    ],
)
def test_what_cannot_be_found_is_said(target, said, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("def train(p): return 1")
    (tmp_path / "notes.txt").write_text("def f(p): return 1")
    (tmp_path / "broken.py").write_text("undefined")
    (tmp_path / "unclosed.py").write_text("f = (")
    (tmp_path / "exits.py").write_text("import sys; sys.exit(3)")
    (tmp_path / "needs.py").write_text("import not_installed")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=said):
        find(target)
    assert not {"broken", "unclosed", "exits", "needs"} & set(sys.modules)


# -- policies --------------------------------------------------------------------------------------------------------


def test_policies_by_any_spelling_and_ones_own(tmp_path):
    assert policy_named("GPUCB") is policy_named("gp-ucb") is policy_named("gp_ucb") is GPUCB
    assert policy_named("bobos") is BOBOS
    (tmp_path / "own.py").write_text("from surefoot import RandomSearch\nclass Own(RandomSearch): 'Mine.'\nx = 3")
    assert issubclass(policy_named(f"{tmp_path}/own.py:Own"), RandomSearch)
    with pytest.raises(ValueError, match="is not a policy: 3"):
        policy_named(f"{tmp_path}/own.py:x")


@pytest.mark.parametrize("name", ["nonsense", "Box", "Policy", "optimize", ""])
def test_what_is_no_policy_is_refused_with_those_there_are(name):
    with pytest.raises(ValueError, match=r"there is no policy .*ExpectedImprovement, .*GPUCB"):
        policy_named(name)


def test_options_are_toml():
    words = ["a=1", "b=2.5", "c=true", 'd="x y"', "e=x y", "f=[1, 2]", "g=inf", "h=", "i=a=b", "j={k = 1}"]
    assert options_from(words) == {
        "a": 1,
        "b": 2.5,
        "c": True,
        "d": "x y",
        "e": "x y",
        "f": [1, 2],
        "g": float("inf"),
        "h": "",
        "i": "a=b",
        "j": {"k": 1},
    }


@pytest.mark.parametrize("word", ["initial", "=3", ""])
def test_options_without_a_key_are_refused(word):
    with pytest.raises(ValueError, match="key=value"):
        options_from([word])


@pytest.mark.parametrize("word", ["widht=2", "seed=3", "journal=x", "domain=y"])
def test_unknown_options_are_named(word):
    with pytest.raises(ValueError, match=rf"GPUCB has no option '{word.split('=')[0]}'; it has .*'width'"):
        options_from([word], GPUCB)


# -- spaces ----------------------------------------------------------------------------------------------------------

EXPECTED = Space(rate=Float(1e-4, 0.1, log=True), depth=Int(1, 9), kind=Choice(["a", 2, True]))


@pytest.mark.parametrize(
    "text",
    [
        """
        [rate]
        type = "float"
        low = 1e-4
        high = 0.1
        log = true
        [depth]
        type = "int"
        low = 1
        high = 9
        [kind]
        type = "choice"
        values = ["a", 2, true]
        """,
        """
        rate = {type = "float", low = 1e-4, high = 0.1, log = true}
        depth = {type = "int", low = 1, high = 9}
        kind = {type = "choice", values = ["a", 2, true]}
        """,
        """
        domain = "Space"
        [parameters]
        rate = {type = "float", low = 1e-4, high = 0.1, log = true}
        depth = {type = "int", low = 1, high = 9, log = false}
        kind = {type = "choice", values = ["a", 2, true]}
        """,
        """
        [parameters.rate]
        type = "float"
        low = 1e-4
        high = 0.1
        log = true
        [parameters.depth]
        type = "int"
        low = 1
        high = 9
        [parameters.kind]
        type = "choice"
        values = ["a", 2, true]
        """,
    ],
)
def test_spaces_are_read_in_every_form(text, tmp_path):
    (tmp_path / "space.toml").write_text(text)
    assert space_from(tmp_path / "space.toml") == EXPECTED


def test_a_parameter_may_be_called_parameters(tmp_path):
    (tmp_path / "space.toml").write_text('[parameters]\ntype = "int"\nlow = 1\nhigh = 2')
    assert space_from(tmp_path / "space.toml") == Space(parameters=Int(1, 2))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "at least one parameter"),
        ("rate\n", "line 1"),
        ("rate = 3", "'rate' needs a type among .* got 3"),
        ("rate = {low = 0, high = 1}", "'rate' needs a type"),
        ('rate = {type = ["float"], low = 0, high = 1}', "'rate' needs a type"),
        ('rate = {type = "flaot", low = 0, high = 1}', "'rate' needs a type .*flaot"),
        ('rate = {type = "float", low = 0}', "'rate': a float needs 'high'"),
        ('rate = {type = "float", low = 0, hihg = 1}', "'rate': unknown key 'hihg' = 1; a float has low, high, log"),
        ('rate = {type = "float", low = 2, high = 1}', "'rate': bounds are inverted: low=2.0, high=1.0"),
        ('rate = {type = "float", low = "0", high = 1}', "'rate': low must be a finite number, got '0'"),
        ('rate = {type = "float", low = 0, high = inf}', "'rate': high must be a finite number, got inf"),
        ('rate = {type = "float", low = 0, high = 1, log = true}', "'rate': a logarithmic axis needs low > 0"),
        ('rate = {type = "float", low = 1, high = 2, log = "false"}', "'rate': log must be True or False, got 'false'"),
        ('depth = {type = "int", low = 1.5, high = 2}', "'depth': low must be an integer, got 1.5"),
        ('kind = {type = "choice", values = []}', "'kind': a choice has a list of one or more values"),
        ('kind = {type = "choice", values = ["a", "a"]}', "'kind': value 'a' occurs twice"),
        ('kind = {type = "choice"}', "'kind': a choice needs 'values'"),
        ('domain = "Box"\nbounds = [[0, 1]]', "a Box, not a Space"),
    ],
)
def test_what_is_wrong_in_a_space_is_said_with_file_key_and_value(text, said, tmp_path):
    (tmp_path / "space.toml").write_text(text)
    with pytest.raises(ValueError, match=said) as caught:
        space_from(tmp_path / "space.toml")
    assert str(caught.value).startswith(f"{tmp_path / 'space.toml'}: ")


def test_missing_space_files_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"there is no space file .*absent\.toml"):
        space_from(tmp_path / "absent.toml")
