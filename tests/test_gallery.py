"""The gallery shows what exists: its pictures, its samples, its commands."""

import re
from pathlib import Path

from runner import cli

ROOT = Path(__file__).parents[1]
GALLERY = ROOT / "docs/gallery"
TEXT = (GALLERY / "README.md").read_text()


def test_every_picture_is_there_and_every_one_is_shown() -> None:
    shown = set(re.findall(r"!\[[^\]]+\]\(([^)]+)\)", TEXT))
    assert shown == {path.name for path in GALLERY.glob("*.png")}


def test_the_problems_are_samples_whose_source_is_shown() -> None:
    labels = re.findall(r"^## (level\d/\w+)$", TEXT, re.MULTILINE)
    assert len(labels) == 3
    for label in labels:
        source = (ROOT / f"data/samples/{label}.py").read_text()
        assert source[source.index("class Model") :].partition("\n\n\ndef")[0] in TEXT


def test_its_commands_are_ours() -> None:
    said = re.findall(r"^\$ kdrun (\w+)", TEXT, re.MULTILINE)
    assert set(said) <= set(cli.cli.commands)
    assert {"show", "report", "workloads", "decompose"} <= set(said)


def test_pictures_stay_small() -> None:
    assert sum(path.stat().st_size for path in GALLERY.glob("*.png")) < 2_000_000
