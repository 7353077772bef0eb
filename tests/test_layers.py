"""Imports go one way, and each outside library has its place."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

RUNNER = Path(__file__).parents[1] / "runner"
LAYERS = (
    "counting",
    "statuses",
    "errors",
    "config",
    "torch_internals",
    "problems",
    "graph",
    "tree",
    "emit",
    "verify",
    "prompts",
    "store",
    "batch",
    "report",
    "cli",
)
FENCES = {
    "torch.export": {"graph"},
    "ray": {"batch", "cli"},
    "boto3": {"store"},
    "botocore": {"store"},
    "s3transfer": {"store"},
    "click": {"cli"},
    "pydantic_settings": {"config"},
}
FILES = sorted(RUNNER.rglob("*.py"))


def layer(path: Path) -> str:
    return path.relative_to(RUNNER).parts[0].removesuffix(".py")


def imported(path: Path) -> Iterator[tuple[str, int]]:
    """Dotted names that a file imports, wherever in it, with their lines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def name_of(path: Path) -> str:
    return path.relative_to(RUNNER).as_posix()


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_file_imports_only_from_layers_below_its_own(path: Path) -> None:
    own = layer(path)
    if own == "__init__":
        assert not [name for name, _ in imported(path) if name.startswith("runner")]
        return
    for name, line in imported(path):
        parts = name.split(".")
        if parts[0] != "runner" or parts[1:2] in ([], ["__version__"], ["STARTED"], [own]):
            continue
        assert LAYERS.index(parts[1]) < LAYERS.index(own), f"{path}:{line} imports {name}"


@pytest.mark.parametrize("library", FENCES)
def test_a_library_stays_behind_its_fence(library: str) -> None:
    outside = [
        f"{name_of(path)}:{line}"
        for path in FILES
        for name, line in imported(path)
        if f"{name}.".startswith(f"{library}.") and layer(path) not in FENCES[library]
    ]
    assert outside == []


def test_every_folder_and_file_belongs_to_a_layer() -> None:
    assert {layer(path) for path in FILES} - {"__init__"} <= set(LAYERS)


def test_verification_shares_nothing_with_the_emitter() -> None:
    shared = [
        f"{name_of(path)}:{line} {name}"
        for path in FILES
        if layer(path) == "verify"
        for name, line in imported(path)
        if name.startswith(("runner.emit", "runner.graph"))
    ]
    assert shared == []


@pytest.mark.parametrize(
    "module", ["runner.cli", "runner.config", "runner.batch.submit", "runner.batch.alone"]
)
def test_importing_it_loads_neither_torch_nor_ray_nor_boto3(module: str) -> None:
    program = f"import sys, {module}; print(sorted({{'torch', 'ray', 'boto3'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
