"""Extras install only what is used: each of their distributions is imported in src, or has its reason here."""

import ast
import re
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parents[2]
NOT_IMPORTED = {"pandas": "pyspark's functions on Arrow data import it"}
FOR_DEVELOPMENT = {"dev"}


def modules_imported() -> set[str]:
    """The first names of all modules that src imports, wherever in a file."""
    found: set[str] = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {name.name.split(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.split(".")[0])
    return found


def distributions_in_extras() -> dict[str, set[str]]:
    """Extra -> names of its distributions, without those that an extra takes from another one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {
        extra: {re.split(r"[\[<>=!~; ]", line, maxsplit=1)[0].lower() for line in lines}
        for extra, lines in project["optional-dependencies"].items()
        if extra not in FOR_DEVELOPMENT
    }
    return {extra: distributions - {project["name"]} for extra, distributions in names.items()}


def test_each_distribution_of_an_extra_is_used() -> None:
    modules: dict[str, set[str]] = {}
    for module, distributions in packages_distributions().items():
        for distribution in distributions:
            modules.setdefault(distribution.lower().replace("_", "-"), set()).add(module)
    imported = modules_imported()
    extras = distributions_in_extras()
    assert {"arrow", "spark", "postgresql"} <= extras.keys()
    unused = {
        f"{extra}: {distribution}"
        for extra, distributions in extras.items()
        for distribution in distributions - NOT_IMPORTED.keys()
        if not modules.get(distribution, {distribution.replace("-", "_")}) & imported
    }
    assert not unused, "extras that install what src does not import"


def test_the_reasons_are_for_what_is_there() -> None:
    named = set().union(*distributions_in_extras().values())
    assert NOT_IMPORTED.keys() <= named
    assert not NOT_IMPORTED.keys() & modules_imported(), "imported: needs no reason"
