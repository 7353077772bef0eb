"""docs/versions.md and the extras name the same lower bounds as the dependencies do."""

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def bounds(requirements: Iterable[str]) -> dict[str, str]:
    """Package -> its lower bound."""
    parsed = (re.match(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", line) for line in requirements)
    return {match[1]: match[2] for match in parsed if match}


DEPENDENCIES = bounds(PROJECT["dependencies"])


def test_the_page_has_a_row_with_the_bound_of_each_package() -> None:
    page = (ROOT / "docs/versions.md").read_text(encoding="utf-8")
    table = page.partition("## Other packages")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| ([\w-]+) \| ([\d.]+) \|", table, re.MULTILINE))
    assert rows == {name: low for name, low in DEPENDENCIES.items() if name != "torch"}


def test_an_extra_asks_for_no_older_version_than_the_default_installation() -> None:
    for requirements in PROJECT["optional-dependencies"].values():
        for name, low in bounds(requirements).items():
            assert numbers(low) >= numbers(DEPENDENCIES.get(name, "0")), name


def numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]
