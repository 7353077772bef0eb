"""Rules 1 to 7 of a decomposition, each proved from the directory alone."""

from __future__ import annotations

from pathlib import Path

from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException

from checker.directory import Directory
from checker.findings import Finding
from checker.measured import Seen, all_compute_in_kernels, exact, instances, one_operation
from checker.running import Bench, Refused
from checker.structure import levels, one_file, source_level, standalone


def check(path: Path) -> list[Finding]:
    """Every rule that the decomposition breaks; none where it is as DESIGN.md says."""
    directory = Directory(path)
    try:
        for file in directory.components:
            directory.parsed(file)
    except SyntaxError as error:
        return [Finding(7, file, f"line {error.lineno}: {error.msg}")]
    found = [*levels(directory), *source_level(directory), *one_file(directory)]
    found += standalone(directory)
    bench = Bench(directory)
    try:
        try:
            seen = _run(bench)
        except (DataDependentOutputException, DynamicOutputShapeException):
            bench.values = True
            seen = _run(bench)
    except Refused as error:
        return [*found, Finding(7, str(error).partition(":")[0], f"does not run: {error}")]
    found += exact(directory, seen)
    found += all_compute_in_kernels(directory, seen)
    found += one_operation(directory, seen)
    found += instances(directory, seen)
    return sorted(found, key=lambda f: f.rule)


def _run(bench: Bench) -> Seen:
    directory = bench.directory
    return Seen(
        original=bench.original(),
        components={name: bench.component(name) for name in directory.components},
        steps={folder: bench.step(folder) for folder in directory.steps},
        composition=bench.composition(),
    )
