"""Write the reference: every public name of every module, from the source alone.

A page of this folder holds a sentence or two and a mark, ``<!-- room: surefoot.domain -->``, which becomes the modules
of that room: what each is for, and every name in its ``__all__`` with signature, documentation, examples and the place
to import it from. ``<!-- names: surefoot -->`` becomes a table of what a package offers, ``<!-- scripts: examples -->``
one of the scripts in a folder. The source is read, never imported, so the bridges are there whether their hosts are
installed or not. MkDocs calls ``on_page_markdown``.
"""

from __future__ import annotations

import ast
import html
import inspect
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
ROOTS = (PROJECT / "src", PROJECT / "lab" / "src")
MARK = re.compile(r"^<!-- (room|names|scripts): ([\w.]+) -->$", flags=re.MULTILINE)
SECTION = re.compile(r"^([A-Z][a-z]+)\n-{3,}\n", flags=re.MULTILINE)
ROLE = re.compile(r":\w+:`~?(?:[\w.]+\.)?([\w]+)`")
CODE = re.compile(r"(`+)(?:(?!\1).|\n)+?\1")
EMPHASIS = re.compile(r"(?<![\w*\\])(\*\*?)(?=[^\s*])[^*\n]*[^\s*]\1(?![\w*])")
SPECIAL = re.compile(r"(?<!^)[*_\[]|^[*_\[](?! )", flags=re.MULTILINE)  # an item of a list keeps its star
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One file: its dotted name, its documentation, and its public names with what defines them."""

    name: str
    doc: str
    public: list[str]
    made: dict[str, ast.AST] = field(repr=False)
    offered: dict[str, str] = field(repr=False)  # lazily or by an import: name -> the module it comes from


def on_page_markdown(markdown: str, **_: object) -> str:
    """Put the reference in place of the marks of a page."""
    return MARK.sub(lambda mark: {"room": room, "names": names, "scripts": scripts}[mark[1]](mark[2]), markdown)


@cache
def modules() -> dict[str, Module]:
    """Read every module that has an ``__all__``, and every package."""
    found = {}
    for path in [path for root in ROOTS for path in sorted(root.glob("*/**/*.py"))]:
        root = next(root for root in ROOTS if path.is_relative_to(root))
        parts = list(path.relative_to(root).with_suffix("").parts)
        if {"experiments", "migrations"} & set(parts):
            continue  # run by the laboratory and by Alembic, imported by nobody
        if parts[-1] == "__init__":
            parts.pop()
        name = ".".join(parts)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        public, offered, made = [], {}, {}
        for node in tree.body:
            if isinstance(node, Function | ast.ClassDef):
                made[node.name] = node
            elif isinstance(node, ast.ImportFrom) and node.module:
                offered |= {alias.asname or alias.name: node.module for alias in node.names}
            elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                listed = [each.id for each in ast.walk(targets[0]) if isinstance(each, ast.Name)]
                made |= dict.fromkeys(listed, node)
                if listed == ["__all__"]:
                    public = ast.literal_eval(node.value)
                elif "__all__" in listed and isinstance(node.value, ast.Call):  # lazy.names(__name__, {...})
                    homes = table(node.value.args[1])
                    offered = {each: f"{name}.{home}" for home, names in homes.items() for each in names}
                    public = sorted(offered)
        if public or path.name == "__init__.py":
            found[name] = Module(name, ast.get_docstring(tree) or "", public, made, offered)
    return found


def table(node: ast.expr) -> dict[str, list[str]]:
    """Return a table of names; ``**registry.SHIPPED`` in it is the policies that ship."""
    if not isinstance(node, ast.Dict):
        raise ValueError(f"this is no table of names: {ast.unparse(node)}")
    own = [(key, value) for key, value in zip(node.keys, node.values, strict=True) if key is not None]
    found: dict[str, list[str]] = {ast.literal_eval(key): ast.literal_eval(value) for key, value in own}
    if len(own) == len(node.keys):
        return found
    policies = ast.parse((ROOTS[0] / "surefoot" / "loop" / "registry.py").read_text(encoding="utf-8"))
    assigned = [each for each in policies.body if isinstance(each, ast.Assign)]
    [shipped] = [each.value for each in assigned if ast.unparse(each.targets[0]) == "SHIPPED"]
    return found | ast.literal_eval(shipped)


@cache
def home(module: str, name: str) -> str:
    """Return the module in which a name is made, following what packages offer."""
    here = modules().get(module)
    if here is None or name in here.made or here.offered.get(name, module) == module:
        return module
    return home(here.offered[name], name)


@cache
def shortest(module: str, name: str) -> str:
    """Return the shortest place to import a name from."""
    places = [each.name for each in modules().values() if name in each.public and home(each.name, name) == module]
    return min([*places, module], key=len)


def room(package: str) -> str:
    """Return the modules of a room; of ``surefoot`` only those that lie in no room."""
    inside = [each for name, each in modules().items() if name.startswith(package + ".")]
    if package == "surefoot":
        inside = [each for each in inside if each.name.count(".") == 1 and each.made]
    blocks = []
    for module in inside:
        own = [name for name in module.public if name in module.made]
        if own:
            blocks += [f"## `{module.name}` {{ #{module.name} }}", prose(module.doc)]
            blocks += [entry(module, name) for name in own]
    return "\n\n".join(blocks)


def page_of(module: str) -> str:
    """Return the page on which a module stands."""
    package, *rest = module.split(".")
    return "lab" if package == "surefoot_lab" else rest[0] if len(rest) > 1 else "index"


def names(package: str) -> str:
    """Return a table of what a package offers, each name with its first sentence and a link."""
    rows = ["| name | what it is |", "|---|---|"]
    for name in modules()[package].public:
        source = home(package, name)
        node = modules()[source].made.get(name) if source in modules() else None
        if isinstance(node, Function | ast.ClassDef):
            page = page_of(source)
            first = (ast.get_docstring(node) or "").split("\n\n")[0].replace("\n", " ")
            rows.append(f"| [`{name}`]({page}.md#{source}.{name}) | {escape(first).replace('|', chr(92) + '|')} |")
    return "\n".join(rows)


def scripts(folder: str) -> str:
    """Return a table of the scripts in a folder: what each shows, and the classes at the top level that it uses."""
    rows = ["| script | what it shows | with |", "|---|---|---|"]
    offered = modules()["surefoot"].offered
    for path in sorted((PROJECT / folder).glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        used = {
            getattr(each, field) for each in ast.walk(tree) for field in ("id", "attr", "value") if named(each, field)
        }
        homes = {each: home("surefoot", each) for each in sorted(used & set(offered))}
        rooms = {each: module.split(".")[1] for each, module in homes.items()}
        links = [f"[`{each}`](reference/{rooms[each]}.md#{homes[each]}.{each})" for each in homes]
        policies = [link for each, link in zip(homes, links, strict=True) if rooms[each] in ("policy", "games")]
        first = (ast.get_docstring(tree) or "").split("\n\n")[0].replace("\n", " ")
        rows.append(f"| `{folder}/{path.name}` | {escape(first)} | {', '.join(policies)} |")
    return "\n".join(rows)


def named(node: ast.AST, field: str) -> bool:
    """Say whether a field of a node holds a word: a name, an attribute, or a string that may name a class."""
    return isinstance(getattr(node, field, None), str)


def entry(module: Module, name: str) -> str:
    """Return the heading, the signature and the documentation of one public name."""
    node = module.made[name]
    blocks = [f"### {escape(name)} {{ #{module.name}.{name} }}"]
    if isinstance(node, Function | ast.ClassDef):
        blocks += [fence(signature(node, width=80)), f"`from {shortest(module.name, name)} import {name}`", *tags(node)]
        blocks.append(prose(ast.get_docstring(node) or ""))
        if isinstance(node, ast.ClassDef):
            parts = [definition(heading(each), prose(ast.get_docstring(each) or "")) for each in methods(node)]
            blocks += ["**Methods and properties**", *parts] if parts else []
    else:
        value = ast.unparse(node)
        blocks += [fence(value if len(value) < 200 else f"{name} = ..."), f"`from {module.name} import {name}`"]
    return "\n\n".join(blocks)


def tags(node: Function | ast.ClassDef) -> list[str]:
    """Return what stands beside a name: bases worth naming, and the mark on what is young."""
    made = []
    if isinstance(node, ast.ClassDef) and node.bases:
        made.append("Extends " + ", ".join(f"`{ast.unparse(base)}`" for base in node.bases) + ".")
    if any(ast.unparse(each).rpartition(".")[2] == "experimental" for each in node.decorator_list):
        made.append("**Experimental:** this may still change between two minor versions.")
    return made


def methods(node: ast.ClassDef) -> list[Function]:
    """Return the documented methods of a class that are meant for callers."""
    return [
        each
        for each in node.body
        if isinstance(each, Function) and not each.name.startswith("_") and ast.get_docstring(each)
    ]


def heading(node: Function) -> str:
    """Return how a method is called: ``ask(n=None)``, or its bare name if it is a property."""
    kinds = {ast.unparse(each).rpartition(".")[2] for each in node.decorator_list}
    return f"`{node.name}`" if kinds & {"property", "cached_property"} else f"`{signature(node)}`"


def signature(node: Function | ast.ClassDef, width: int = 10_000) -> str:
    """Return how something is called, with one argument per line where it is wider than ``width``."""
    parts = arguments(node)
    if parts is None:
        return f"class {node.name}"
    line = f"{node.name}({', '.join(parts)})"
    return line if len(line) <= width else f"{node.name}(\n" + "".join(f"    {each},\n" for each in parts) + ")"


def arguments(node: Function | ast.ClassDef) -> list[str] | None:
    """Return the arguments of a call without annotations: of a function, a constructor, or the fields of a class."""
    if isinstance(node, ast.ClassDef):
        maker = next((each for each in node.body if isinstance(each, Function) and each.name == "__init__"), None)
        if maker is not None:
            return arguments(maker)
        if not any("dataclass" in ast.unparse(each) for each in node.decorator_list):
            return None
        fields = [each for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)]
        return [shown(each.target.id, each.value) for each in fields]
    args = node.args
    plain = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(plain) - len(args.defaults)) + list(args.defaults)
    pairs = [(each.arg, value) for each, value in zip(plain, defaults, strict=True)]
    made = [shown(*pair) for pair in (pairs[1:] if pairs and pairs[0][0] in ("self", "cls") else pairs)]
    if args.vararg or args.kwonlyargs:
        made.append(f"*{args.vararg.arg}" if args.vararg else "*")
    made += [shown(each.arg, value) for each, value in zip(args.kwonlyargs, args.kw_defaults, strict=True)]
    return [*made, f"**{args.kwarg.arg}"] if args.kwarg else made


def shown(name: str, value: ast.expr | None) -> str:
    """Return an argument with its default; long defaults are left out."""
    text = "" if value is None else ast.unparse(value)
    return name if value is None else f"{name}={text if len(text) < 40 else '...'}"


def prose(doc: str) -> str:
    """Return a docstring as Markdown: text, NumPy-style sections, and examples as code."""
    doc = ROLE.sub(r"``\1``", inspect.cleandoc(doc))
    title, *rest = SECTION.split(doc)
    blocks = [paragraphs(title)]
    for name, text in zip(rest[::2], rest[1::2], strict=True):
        listed, examples = text, ""
        if (start := re.search(r"^>>> |\n\n(?=\S[^\n]*\n(?!    ))", text, flags=re.MULTILINE)) is not None:
            listed, examples = text[: start.start()], text[start.start() :]  # what follows belongs to no section
        blocks += [f"**{name}**", items(listed) if name != "Examples" else "", paragraphs(examples)]
    return "\n\n".join(block for block in blocks if block.strip())


def items(text: str) -> str:
    """Return the entries of a section: ``name : type`` with the lines below as what it means."""
    made = []
    for part in re.split(r"\n(?=\S)", text.strip("\n")):
        name, _, below = part.partition("\n")
        term, colon, kind = name.partition(" : ")
        label = f"`{term.strip()}`" + (f" : {escape(kind)}" if colon else "")
        if part.strip():
            made.append(definition(label, paragraphs(inspect.cleandoc(below)) or "\u00a0"))
    return "\n\n".join(made)


def definition(term: str, text: str) -> str:
    """Return one entry of a definition list."""
    return f"{term}\n:   " + text.replace("\n", "\n    ").replace("\n    \n", "\n\n")


def paragraphs(text: str) -> str:
    """Return plain paragraphs and examples; indented blocks stay as they are."""
    made: list[str] = []
    for block in re.split(r"\n{2,}", text.strip("\n")):
        start = re.search(r"^>>> ", block, flags=re.MULTILINE)
        cut = len(block) if start is None else start.start()
        before, example = block[:cut].rstrip(), block[cut:]
        if before:
            made.append(before if before.startswith("    ") else escape(before))
        if example:
            joined = made and made[-1].startswith("```pycon") and not before
            made.append(fence(example, "pycon") if not joined else f"{made.pop()[:-4]}\n\n{example}\n```")
    return "\n\n".join(made)


def escape(text: str) -> str:
    """Return text that Markdown shows as it is written, code and emphasis kept."""
    made, last = [], 0
    for code in CODE.finditer(text):
        made += [plain(text[last : code.start()]), code.group()]
        last = code.end()
    return "".join([*made, plain(text[last:])])


def plain(text: str) -> str:
    """Return text without code, everything escaped but what is *emphasized*."""
    made, last = [], 0
    for strong in EMPHASIS.finditer(text):
        made += [SPECIAL.sub(r"\\\g<0>", text[last : strong.start()]), strong.group()]
        last = strong.end()
    return html.escape("".join([*made, SPECIAL.sub(r"\\\g<0>", text[last:])]), quote=False)


def fence(code: str, language: str = "python") -> str:
    """Return a block of code."""
    return f"```{language}\n{code}\n```"
