"""Whole decompositions as one text each; run this file to write them anew, and read the change."""

import json
import re
import tempfile
from pathlib import Path

from runner.emit import checks, decompose
from runner.problems import read_problem

FOLDER = Path(__file__).parent / "snapshots"
SAMPLES = Path(__file__).parents[2] / "data" / "samples"
CHECKS = Path(checks.__file__)
SHOWN = (
    "level1/masked_cumsum",  # one kernel, a boolean input
    "level2/conv_bn_relu",
    "level2/masked_attention_scores",  # einsum, a mask that comes in, strides that are kept
    "level3/attention_block",  # a table that is computed anew, a fusion with a name of its own
    "level3/gru",  # a recurrent layer, ids, unpacked results
    "level3/rnn_unrolled",  # one block many times, writes into parts of a tensor
)


def written(sample: str) -> str:
    """Every file of a sample's decomposition, one after another; of a copy its original's name."""
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "out"
        decompose(read_problem(SAMPLES / f"{sample}.py"), directory)
        components = sorted(directory.glob("level_*/*.py"), reverse=True)
        others = sorted(f for f in directory.rglob("*") if f.is_file() and f not in components)
        shown = {
            (SAMPLES / f"{sample}.py").read_bytes(): "the problem file",
            CHECKS.read_bytes(): f"{CHECKS.parent.name}/{CHECKS.name} of kdrun",
        }
        texts = []
        for file in [*components, *others]:
            name, content = file.relative_to(directory).as_posix(), file.read_bytes()
            if content in shown:
                texts.append(f"===== {name}: {shown[content]}")
            else:
                shown[content] = name
                texts.append(f"===== {name}\n{_shown(file)}")
    text = "\n".join(texts) + "\n"
    text = re.sub(r"(torch|kdrun)_version: .*", r"\1_version: X", text)
    return re.sub(r"with torch [^\s.]+(\.[^\s.]+)*", "with torch X", text)


def _shown(file: Path) -> str:
    """A file's text; of a JSON document a line for each thing in it."""
    if file.suffix != ".json":
        return file.read_text(encoding="utf-8")
    document = json.loads(file.read_text(encoding="utf-8"))
    lines = []
    for key, value in document.items() if isinstance(document, dict) else enumerate(document):
        several = value.items() if isinstance(value, dict) else enumerate(value)
        if isinstance(value, str) or not value:
            several = [("", value)]
        lines += [f"{key} {inner}: {json.dumps(item)}" for inner, item in several]
    return "\n".join(lines) + "\n"


def path_of(sample: str) -> Path:
    """Where a sample's text is kept."""
    return FOLDER / f"{sample.partition('/')[2]}.txt"


if __name__ == "__main__":
    for old in FOLDER.glob("*.txt"):
        old.unlink()
    for sample in SHOWN:
        path_of(sample).write_text(written(sample), encoding="utf-8")
