"""This file knows about writing workloads for other tools: where each file goes, and what is said.

`kernelbench/level1/<n>_<name>.py`, `sol-execbench/<name>/{definition.json, workload.jsonl}`,
`flashinfer-bench/{definitions, workloads, blob}/...`.
"""

import json
import re
import shutil
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from runner.batch.child import Request, close_zygote, run_child
from runner.batch.cluster import usable_bytes
from runner.counting import counted
from runner.errors import StoreError, UsageError
from runner.report.catalogue import Workload, source_of
from runner.report.definitions import FLASHINFER_LACKS, Definition, define, read, to_lines
from runner.report.subject import Subject
from runner.store.directory import write_atomically

_write = partial(write_atomically, setting="--export")
MOST_BLOB_BYTES = 256 << 20
TIMEOUT_S = 300.0
_MODE_MATTERS = re.compile(r"nn\.(BatchNorm|InstanceNorm|Dropout|AlphaDropout)")

_README = """# Workloads of {title}

Written by kdrun {version}: {count}, those with the largest share of the work first.

`kernelbench/`: one file a workload, in KernelBench's format. Its loader takes them as level 1:

    from kernelbench.dataset import LocalKernelBenchDataset
    LocalKernelBenchDataset(level=1, base_path=".../kernelbench")

`sol-execbench/`: a folder a definition, with its workloads. `sol-execbench FOLDER --solution ...`
measures a solution of it.

`flashinfer-bench/`: a dataset of definitions and workloads. `TraceSet.from_path(...)` reads it.

`index.json` says which is which, and which models use it where.
{notes}"""


def export(
    chosen: Sequence[Workload], subject: Subject, directory: Path, memory_bytes: int | None = None
) -> list[str]:
    """Write the workloads in all three formats; returns what could not be said, a sentence each.

    Raises:
        UsageError: the directory holds something.
        StoreError: it cannot be written to.
        ClusterError: there is no memory to draw inputs in.
    """
    from runner import __version__

    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UsageError(f"{directory}: not empty", hint="choose a new directory to export to")
    notes: list[str] = []
    index: list[dict[str, Any]] = []
    subjects = []
    for number, row in enumerate(chosen, 1):
        file = source_of(row, subject)
        name = f"{number}_{row.name}.py"
        text = file.read_text(encoding="utf-8")
        _write(directory / "kernelbench/level1" / name, for_kernelbench(text, row.mode))
        index.append(
            {"kernelbench": f"level1/{name}", "definition": None}
            | row.model_dump(mode="json", exclude_none=True)
        )
        try:
            subjects.append(read(row, file))
        except ValueError as error:
            notes.append(f"{row.name} has no definition: {error}")
    definitions = define(subjects)
    of = {member.workload.name: d.name for d in definitions for member in d.subjects}
    for entry in index:
        entry["definition"] = of.get(entry["name"])
    for definition in definitions:
        _sol_execbench(definition, directory / "sol-execbench" / definition.name)
    notes += _flashinfer_bench(definitions, directory / "flashinfer-bench", memory_bytes)
    _write(directory / "index.json", json.dumps(index, indent=1) + "\n")
    said = "".join(f"\nNot said: {note}.\n" for note in notes)
    readme = _README.format(
        title=subject.title, version=__version__, count=counted(len(chosen), "workload"), notes=said
    )
    _write(directory / "README.md", readme)
    return notes


def for_kernelbench(text: str, mode: str) -> str:
    """The component, which is a problem already; its mode is made its own where that matters.

    KernelBench never calls `eval()`: a batch norm would use other statistics than in the model.
    """
    if mode == "train" or not _MODE_MATTERS.search(text):
        return text
    lines = text.splitlines(keepends=True)
    inside = False
    for number, line in enumerate(lines):
        if line.startswith("    def __init__"):
            inside = True
        elif inside and line.strip() and not line.startswith(" " * 8):
            while not lines[number - 1].strip():
                number -= 1
            comment = "  # KernelBench does not; the model ran so\n"
            lines.insert(number, f"        self.eval(){comment}")
            break
    return "".join(lines)


def _sol_execbench(definition: Definition, folder: Path) -> None:
    _write(folder / "definition.json", json.dumps(definition.document, indent=2) + "\n")
    _write(folder / "workload.jsonl", to_lines(definition.workloads))


def _flashinfer_bench(
    definitions: Sequence[Definition], root: Path, memory_bytes: int | None
) -> list[str]:
    """Inputs that random values cannot stand for are drawn here and kept as safetensors."""
    notes = []
    with tempfile.TemporaryDirectory(prefix="kdrun-") as aside:
        try:
            for definition in definitions:
                try:
                    records = [
                        _recorded(definition, workload, root, Path(aside), memory_bytes)
                        for workload in definition.workloads
                    ]
                except ValueError as error:
                    notes.append(f"{definition.name} is not in flashinfer-bench/: {error}")
                    continue
                document = {
                    k: v for k, v in definition.document.items() if k != "custom_inputs_entrypoint"
                } | {"tags": ["kdrun"]}
                place = f"{document['op_type']}/{definition.name}"
                _write(root / f"definitions/{place}.json", json.dumps(document, indent=2) + "\n")
                _write(root / f"workloads/{place}.jsonl", to_lines(records))
        finally:
            close_zygote()
    return notes


def _recorded(
    definition: Definition,
    workload: dict[str, Any],
    root: Path,
    aside: Path,
    memory_bytes: int | None,
) -> dict[str, Any]:
    subject = definition.subjects[0]
    tensors = (*subject.inputs, *subject.outputs)
    lacking = {tensor.dtype for tensor in tensors} & FLASHINFER_LACKS
    if lacking:
        raise ValueError(f"it has no {', '.join(lacking)}")
    inputs = workload["inputs"]
    if definition.custom:
        special = [tensor for tensor in subject.inputs if not tensor.plain]
        inputs = {tensor.name: {"type": "random"} for tensor in subject.inputs}
        if special:
            relative = (
                f"blob/workloads/{definition.document['op_type']}/{definition.name}.safetensors"
            )
            wanted = {t.name: t.weight if t.weight else subject.inputs.index(t) for t in special}
            _draw(subject.file, wanted, root / relative, aside, memory_bytes)
            for tensor in special:
                inputs[tensor.name] = {
                    "type": "safetensors",
                    "path": relative,
                    "tensor_key": tensor.name,
                }
    recorded = {"axes": workload["axes"], "inputs": inputs, "uuid": workload["uuid"]}
    return {
        "definition": definition.name,
        "workload": recorded,
        "solution": None,
        "evaluation": None,
    }


def _draw(
    file: Path,
    wanted: dict[str, str | int],
    path: Path,
    aside: Path,
    memory_bytes: int | None,
) -> None:
    drawn = aside / "drawn"
    argument = {
        "file": str(file.absolute()),
        "wanted": wanted,
        "to": str(drawn),
        "most_bytes": MOST_BLOB_BYTES,
    }
    outcome = run_child(
        Request(
            function="runner.report.drawing:draw",
            argument=json.dumps(argument),
            directory=aside,
            log=aside / "log",
            memory_bytes=usable_bytes(memory_bytes),
            timeout_s=TIMEOUT_S,
        )
    )
    said = json.loads(outcome.answer)["error"] if outcome.answer else outcome.how()
    if said:
        raise ValueError(f"its inputs cannot be drawn: {said}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(drawn, path)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}", hint="choose another directory") from error
