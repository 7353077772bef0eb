"""docs/reading-a-decomposition.md quotes what is in the directory that it reads."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/reading-a-decomposition.md").read_text(encoding="utf-8")
QUOTES = re.findall(r"<!-- (\S+) -->\n```\w+\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def gpt(decomposed_sample: Callable[[str], Path]) -> Path:
    return decomposed_sample("level3/gpt")


@pytest.mark.parametrize(("name", "quote"), QUOTES)
def test_a_quote_stands_in_the_file_that_it_names(gpt: Path, name: str, quote: str) -> None:
    (file,) = gpt.glob(name.replace("…", "*"))
    assert quote in file.read_text(encoding="utf-8")


def test_each_file_and_folder_of_the_table_is_there(gpt: Path) -> None:
    table = PAGE.partition("## What lies there")[2].partition("\n## ")[0]
    named = re.findall(r"`(\w+[./]\w*)`", table)
    assert len(named) == 11
    verified = {"result.json"}
    assert [name for name in named if not (gpt / name).exists()] == [*verified]
