"""Whole decompositions as one text each; run this file to write them anew, and read the change."""

import re
import tempfile
from pathlib import Path

from runner.emit import decompose
from runner.problems import read_problem

FOLDER = Path(__file__).parent / "snapshots"
SAMPLES = Path(__file__).parents[2] / "data" / "samples"
SHOWN = ("level2/conv_bn_relu", "level3/attention_block")


def written(sample: str) -> str:
    """Everything that people read of a sample's decomposition, file after file."""
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "out"
        decompose(read_problem(SAMPLES / f"{sample}.py"), directory)
        files = [
            *sorted(directory.glob("level_*/*.py"), reverse=True),
            *sorted(directory.glob("steps/*/refactored.py")),
            directory / "verification" / "composition_test.py",
            directory / "decomposition_analysis.md",
        ]
        texts = [f"===== {f.relative_to(directory)}\n{f.read_text()}" for f in files]
    return re.sub(r"with torch [^\s.]+(\.[^\s.]+)*", "with torch X", "\n".join(texts))


def path_of(sample: str) -> Path:
    """Where a sample's text is kept."""
    return FOLDER / f"{sample.partition('/')[2]}.txt"


if __name__ == "__main__":
    for shown in SHOWN:
        path_of(shown).write_text(written(shown), encoding="utf-8")
