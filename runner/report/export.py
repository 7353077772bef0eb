"""Exports workloads for other tools: KernelBench, SOL-ExecBench and FlashInfer-Bench.

`kernelbench/level<N>/<n>_<name>.py`, `sol-execbench/<name>/{definition.json, workload.jsonl}`,
`flashinfer-bench/{definitions, workloads, blob}/...`.
"""

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

from runner.batch.child.child_process import Request, close_fork_server, run_child
from runner.batch.cluster import usable_bytes
from runner.errors import StoreError, UsageError
from runner.graph.ir import ITEM_BYTES
from runner.quantities import pluralize, size
from runner.report.catalogue import CatalogueWorkload, source_of
from runner.report.definitions import (
    FLASHINFER_LACKS,
    Definition,
    DefinitionSubject,
    DefinitionTensor,
    read_subject,
    to_lines,
)
from runner.report.kernelbench import EXPLANATIONS, LEVELS, precision, problem_text
from runner.report.shared_definitions import define_workloads
from runner.report.subject import Subject
from runner.store.directory import write_atomically

_write = partial(write_atomically, setting="--export")
MOST_BLOB_BYTES = 256 << 20
TIMEOUT_S = 300.0
NOT_JUDGED = "not_judged"
"""Folder in `kernelbench/` for workloads that its harness cannot judge; loaders skip it."""

_README = """# Workloads of {title}

Written by kdrun {version}: {count}, those with the largest share of the work first.

`kernelbench/`: one file a workload, in KernelBench's format: kernels are level 1, fusions level 2,
layers and models level 3. Its loader takes the level that there is:

    from kernelbench.dataset import LocalKernelBenchDataset
    LocalKernelBenchDataset(level={level}, base_path=".../kernelbench")

Its harness runs all in one precision, which is to be that of the model: `index.json` names it.
Where the model hands a kernel a view of a larger tensor, the file takes that tensor and makes the
view itself, since the harness packs views together when it casts or moves inputs.
{limited}
`sol-execbench/`: a folder a definition, with its workloads. `sol-execbench FOLDER --solution ...`
measures a solution of it.

`flashinfer-bench/`: a dataset of definitions and workloads. `TraceSet.from_path(...)` reads it.

`index.json` says which is which, and which models use it where.
{notes}"""

_LIMITED = """
`kernelbench/{folder}/` holds {count} that KernelBench's harness would judge by accident:

{reasons}
"""


def export(
    chosen: Sequence[CatalogueWorkload],
    subject: Subject,
    directory: Path,
    *,
    with_inputs: bool = False,
    memory_bytes: int | None = None,
) -> list[str]:
    """Write the workloads in all three formats; return what could not be written, a sentence each.

    With `with_inputs`, the inputs that FlashInfer-Bench cannot draw are drawn and stored.

    Raises:
        UsageError: the directory is not empty.
        StoreError: the directory cannot be written to.
        ClusterError: there is not enough memory to draw inputs.
    """
    from runner import __version__

    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UsageError(f"{directory}: not empty", hint="choose a new directory to export to")
    notes: list[str] = []
    index: list[dict[str, Any]] = []
    subjects = []
    numbers: Counter[str] = Counter()
    for row in chosen:
        file = source_of(row, subject)
        folder = NOT_JUDGED if row.harness_limits else f"level{LEVELS[row.level]}"
        numbers[folder] += 1
        path = f"{folder}/{numbers[folder]}_{row.name}.py"
        text = file.read_text(encoding="utf-8")
        _write(directory / "kernelbench" / path, problem_text(text, row.mode))
        index.append(
            {
                "kernelbench": path,
                "precision": precision({**row.input_dtypes, **row.weight_dtypes}),
                "definition": None,
            }
            | row.model_dump(mode="json", exclude_none=True)
        )
        try:
            subjects.append(read_subject(row, file))
        except ValueError as error:
            notes.append(f"{row.name} has no definition: {error}")
    definitions = define_workloads(subjects)
    definition_names = {member.workload.name: d.name for d in definitions for member in d.subjects}
    for entry in index:
        entry["definition"] = definition_names.get(entry["name"])
    for definition in definitions:
        sol_folder = directory / "sol-execbench" / definition.name
        _write(sol_folder / "definition.json", json.dumps(definition.document, indent=2) + "\n")
        _write(sol_folder / "workload.jsonl", to_lines(definition.workloads))
    root = directory / "flashinfer-bench"
    notes += _write_flashinfer_bench(definitions, root, with_inputs, memory_bytes)
    _write(directory / "index.json", json.dumps(index, indent=1) + "\n")
    readme = _README.format(
        title=subject.title,
        version=__version__,
        count=pluralize(len(chosen), "workload"),
        level=LEVELS[chosen[0].level] if chosen else 1,
        limited=_limits_paragraph(chosen),
        notes="".join(f"\nMind: {note}.\n" for note in notes),
    )
    _write(directory / "README.md", readme)
    return notes


def _limits_paragraph(chosen: Sequence[CatalogueWorkload]) -> str:
    """Return the README's paragraph on workloads that the harness cannot judge, if any."""
    counts = Counter(limit for row in chosen for limit in row.harness_limits)
    reasons = [f"- {limit} ({n}): {EXPLANATIONS[limit]}" for limit, n in counts.most_common()]
    count = sum(bool(row.harness_limits) for row in chosen)
    return _LIMITED.format(folder=NOT_JUDGED, count=count, reasons="\n".join(reasons)) * (count > 0)


def _write_flashinfer_bench(
    definitions: Sequence[Definition], root: Path, with_inputs: bool, memory_bytes: int | None
) -> list[str]:
    """Write FlashInfer-Bench's files; return what could not be written, a sentence each.

    FlashInfer-Bench cannot call a definition's own code to draw inputs. So definitions that need
    such inputs are written only with `with_inputs`, which stores the inputs in files.
    """
    notes = []
    skipped: list[str] = []
    skipped_bytes = 0
    with tempfile.TemporaryDirectory(prefix="kdrun-") as folder:
        try:
            for definition in definitions:
                if needed_bytes := 0 if with_inputs else _total_bytes(definition):
                    skipped.append(definition.name)
                    skipped_bytes += needed_bytes
                    continue
                try:
                    records = [
                        _workload_record(definition, index, root, Path(folder), memory_bytes)
                        for index in range(len(definition.workloads))
                    ]
                except ValueError as error:
                    notes.append(f"{definition.name} is not in flashinfer-bench/: {error}")
                    continue
                document = {
                    k: v for k, v in definition.document.items() if k != "custom_inputs_entrypoint"
                } | {"tags": ["kdrun"]}
                path = f"{document['op_type']}/{definition.name}"
                _write(root / f"definitions/{path}.json", json.dumps(document, indent=2) + "\n")
                _write(root / f"workloads/{path}.jsonl", to_lines(records))
        finally:
            close_fork_server()
    if skipped:
        notes.append(
            f"{pluralize(len(skipped), 'definition')} "
            f"{'is' if len(skipped) == 1 else 'are'} not in "
            "flashinfer-bench/, whose format cannot draw their inputs: --with-inputs stores them "
            f"({size(skipped_bytes)}); first {skipped[0]}"
        )
    return notes


def _stored_inputs(definition: Definition, subject: DefinitionSubject) -> list[DefinitionTensor]:
    """Return the inputs of a definition's workload that random values cannot replace."""
    inputs = subject.inputs if definition.custom else ()
    return [tensor for tensor in inputs if not tensor.plain]


def _total_bytes(definition: Definition) -> int:
    """Return the bytes of all inputs of a definition that have to be stored."""
    tensors = [t for subject in definition.subjects for t in _stored_inputs(definition, subject)]
    return sum(prod(tensor.shape) * ITEM_BYTES[tensor.dtype] for tensor in tensors)


def _workload_record(
    definition: Definition, index: int, root: Path, folder: Path, memory_bytes: int | None
) -> dict[str, Any]:
    subject, workload = definition.subjects[index], definition.workloads[index]
    tensors = (*subject.inputs, *subject.outputs)
    unsupported = {tensor.dtype for tensor in tensors} & FLASHINFER_LACKS
    if unsupported:
        raise ValueError(f"it has no {', '.join(unsupported)}")
    inputs = workload["inputs"]
    if definition.custom:
        inputs = {tensor.name: {"type": "random"} for tensor in subject.inputs}
        if stored := _stored_inputs(definition, subject):
            name = definition.name
            if len(definition.subjects) > 1:
                name += f"_{workload['uuid'][:8]}"
            relative = f"blob/workloads/{definition.document['op_type']}/{name}.safetensors"
            sources = {t.name: t.weight if t.weight else subject.inputs.index(t) for t in stored}
            _draw_tensors(subject.file, sources, root / relative, folder, memory_bytes)
            for tensor in stored:
                inputs[tensor.name] = {
                    "type": "safetensors",
                    "path": relative,
                    "tensor_key": tensor.name,
                }
    recorded_workload = {"axes": workload["axes"], "inputs": inputs, "uuid": workload["uuid"]}
    return {
        "definition": definition.name,
        "workload": recorded_workload,
        "solution": None,
        "evaluation": None,
    }


def _draw_tensors(
    file: Path,
    sources: dict[str, str | int],
    path: Path,
    folder: Path,
    memory_bytes: int | None,
) -> None:
    temporary = folder / "drawn"
    argument = {
        "file": str(file.absolute()),
        "wanted": sources,
        "to": str(temporary),
        "most_bytes": MOST_BLOB_BYTES,
    }
    outcome = run_child(
        Request(
            function="runner.report.tensor_files:draw",
            argument=json.dumps(argument),
            directory=folder,
            log=folder / "log",
            memory_bytes=usable_bytes(memory_bytes),
            timeout_s=TIMEOUT_S,
        )
    )
    failure = json.loads(outcome.answer)["error"] if outcome.answer else outcome.describe_end()
    if failure:
        raise ValueError(f"its inputs cannot be drawn: {failure}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(temporary, path)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}", hint="choose another directory") from error
