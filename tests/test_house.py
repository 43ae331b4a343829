"""The house: what a module may know of others, and one meaning for each name. The sources are read, not imported."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = {ROOT / "src" / "surefoot": "surefoot", ROOT / "lab" / "src" / "surefoot_lab": "surefoot_lab"}
LONGEST = 500

HOSTS = {  # private names of other people's software that there is no public way round
    "src/surefoot/bridge/ax/node.py": {"_experiment", "_name"},
    "src/surefoot/bridge/botorch/belief.py": {"_has_transformed_inputs", "_original_train_inputs"},
    "src/surefoot/bridge/botorch/translate.py": {"_original_train_inputs"},
    "src/surefoot/bridge/optuna/sampler.py": {"_storage", "_trial_id"},
    "src/surefoot/bridge/sklearn/fold.py": {"_check_method_params", "_safe_split"},
    "src/surefoot/bridge/sklearn/search.py": {"_check_method_params"},
    "src/surefoot/serve/worker.py": {"_exit"},
    "lab/src/surefoot_lab/worker.py": {"_exit"},
}
BELIEFS = {
    "DriftingGrid",
    "DriftingPosterior",
    "GridPosterior",
    "MixturePosterior",
    "Posterior",
    "CompactPosterior",
}
POLICIES = {"policy", "chooser", "alone", "twin"}  # what a policy is called where it is used

Node = ast.AST


@cache
def sources() -> dict[str, ast.Module]:
    """Every module of the product and of the laboratory, by its path in the repository."""
    files = [file for package in PACKAGES for file in sorted(package.rglob("*.py"))]
    return {file.relative_to(ROOT).as_posix(): ast.parse(file.read_text(encoding="utf-8")) for file in files}


def room_of(path: str) -> str:
    """The folder under the package, or the file if it stands there itself."""
    parts = path.split("surefoot_lab/" if "surefoot_lab/" in path else "src/surefoot/")[1].split("/")
    return f"{'lab.' if 'surefoot_lab' in path else ''}{parts[0].removesuffix('.py')}"


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


@cache
def members(path: str) -> frozenset[str]:
    """Private names that the module gives to its classes and their objects."""
    found = set()
    for node in ast.walk(sources()[path]):
        if isinstance(node, ast.ClassDef):
            for part in node.body:
                if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    found.add(part.name)
                for name in ast.walk(part) if isinstance(part, ast.Assign | ast.AnnAssign) else ():
                    if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                        found.add(name.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return frozenset(filter(is_private, found))


@cache
def members_of_room(room: str) -> frozenset[str]:
    return frozenset().union(*(members(path) for path in sources() if room_of(path) == room))


def is_own(node: ast.expr) -> bool:
    """Whether this is ``self``, ``cls``, their types, or ``super()``."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id == "super" or (node.func.id == "type" and bool(node.args) and is_own(node.args[0]))
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def reached(path: str) -> Iterator[tuple[int, str, bool]]:
    """Private names that a module takes from elsewhere: line, name, and whether its room defines the name."""
    shared = members_of_room(room_of(path))
    for node in ast.walk(sources()[path]):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and not is_own(node.value):
            if node.attr not in members(path):
                yield node.lineno, node.attr, node.attr in shared
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if is_private(alias.name) and not alias.name.startswith("_version"):
                    yield node.lineno, alias.name, room_of_module(node.module) == room_of(path)


def room_of_module(module: str) -> str:
    package, _, rest = module.partition(".")
    room = rest.partition(".")[0]
    return f"lab.{room}" if package == "surefoot_lab" else room if package == "surefoot" else f"of {package}"


def test_no_module_uses_a_private_name_of_another_room():
    wrong = [
        f"{path}:{line} {name}"
        for path in sources()
        for line, name, own in reached(path)
        if not own and name not in HOSTS.get(path, ())
    ]
    assert not wrong


def test_private_names_are_shared_within_a_room_only_here_and_there():
    assert sum(own for path in sources() if "/surefoot/" in path for _, _, own in reached(path)) <= 45


def test_allowances_for_hosts_are_all_needed():
    for path, names in HOSTS.items():
        assert names <= {name for _, name, _ in reached(path)}, path


def names_policy(node: ast.expr) -> bool:
    if isinstance(node, ast.Name):
        return node.id in POLICIES
    return isinstance(node, ast.Attribute) and node.attr in POLICIES


def asks_python(name: ast.expr) -> bool:
    """Whether the name is one that Python gives, such as ``__name__`` of a function that makes a policy."""
    return isinstance(name, ast.Constant) and str(name.value).startswith("__")


def test_nobody_probes_a_policy_for_what_it_can_do():
    """What a policy may be asked is declared on ``Policy``, with a value for policies that lack the ability."""
    wrong = [
        f"{path}:{node.lineno}"
        for path, tree in sources().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr")
        if names_policy(node.args[0]) and not asks_python(node.args[1])
    ]
    assert not wrong


def test_nobody_asks_which_belief_it_has():
    wrong = []
    for path, tree in sources().items():
        if room_of(path) == "belief":
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                names = {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
                names |= {name.attr for name in ast.walk(node.args[1]) if isinstance(name, ast.Attribute)}
                if names & BELIEFS:
                    wrong.append(f"{path}:{node.lineno}")
    assert not wrong


def test_files_stay_below_500_lines():
    long = [path for path in sources() if len((ROOT / path).read_text(encoding="utf-8").splitlines()) > LONGEST]
    assert not long


def test_imports_within_functions_do_not_go_round_the_rooms():
    """import-linter reads them too, but for the package itself, which offers every room."""
    wrong = []
    for path, tree in sources().items():
        if not path.startswith("src/surefoot/") or room_of(path) in ("cli", "bridge", "serve", "report", "testing"):
            continue
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for node in ast.walk(function):
                    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                    if "surefoot" in names or (isinstance(node, ast.ImportFrom) and node.module == "surefoot"):
                        wrong.append(path)
    assert not wrong


def test_a_public_class_name_has_one_meaning():
    homes = defaultdict(set)
    for path, tree in sources().items():
        if path.startswith("src/surefoot/"):
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    homes[node.name].add(path)
    several = {}
    for name, paths in homes.items():
        if len(paths) > 1:
            several[name] = sorted(paths)
    assert not several


def test_no_package_offers_a_function_under_the_name_of_a_module_of_its_own():
    """``import surefoot.report.page`` would put the module in the place of the function."""
    wrong = []
    for path, tree in sources().items():
        folder = (ROOT / path).parent
        if not path.endswith("/__init__.py"):
            continue
        modules = {part.stem for part in folder.iterdir() if part.is_dir() or part.suffix == ".py"}
        offered, themselves = set(), set()
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                offered.add(node.name)
            if isinstance(node, ast.ImportFrom):
                (themselves if node.module == package_of(path) else offered).update(
                    alias.asname or alias.name for alias in node.names
                )
            for lists in ast.walk(node) if isinstance(node, ast.Assign) else ():  # lazy.names(..., {module: [name]})
                if isinstance(lists, ast.List):
                    offered |= {item.value for item in lists.elts if isinstance(item, ast.Constant)}
        wrong += [f"{path}: {name}" for name in sorted((offered & modules) - themselves)]
    assert not wrong


def package_of(path: str) -> str:
    return path.split("src/")[1].removesuffix("/__init__.py").replace("/", ".")
