"""Imports go one way, and each outside library has its place."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

RUNNER = Path(__file__).parents[1] / "runner"
PUBLIC = RUNNER.with_name("kdrun")
LAYERS = (
    "quantities",
    "untrusted_files",
    "statuses",
    "errors",
    "config",
    "torch_internals",
    "torch_tracing",
    "problems",
    "zoo",
    "graph",
    "tree",
    "emit",
    "verify",
    "prompts",
    "store",
    "batch",
    "report",
    "evaluate",
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


@cache
def imported(path: Path) -> list[tuple[str, int]]:
    """Dotted names that a file imports, wherever in it, with their lines."""
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            names += [(f"{node.module}.{alias.name}", node.lineno) for alias in node.names]
    return names


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


def test_only_users_import_the_public_package() -> None:
    assert not [name for path in FILES for name, _ in imported(path) if name.startswith("kdrun")]


@pytest.mark.parametrize("library", FENCES)
def test_a_library_stays_behind_its_fence(library: str) -> None:
    outside = [
        f"{name_of(path)}:{line}"
        for path in FILES
        for name, line in imported(path)
        if f"{name}.".startswith(f"{library}.") and layer(path) not in FENCES[library]
    ]
    outside += [
        f"{path.name}:{line}"
        for path in PUBLIC.rglob("*.py")
        for name, line in imported(path)
        if f"{name}.".startswith(f"{library}.")
    ]
    assert outside == []


def test_every_folder_and_file_belongs_to_a_layer() -> None:
    assert {layer(path) for path in FILES} - {"__init__"} <= set(LAYERS)


def test_verification_shares_with_the_emitter_what_one_operation_is_and_nothing_else() -> None:
    shared = [
        f"{name_of(path)}:{line} {name}"
        for path in FILES
        if layer(path) == "verify" and path.name != "one_operation.py"
        for name, line in imported(path)
        if name.startswith(("runner.emit", "runner.graph"))
    ]
    assert shared == []


def private_names(path: Path) -> Iterator[str]:
    """Names with a leading underscore that a file takes from elsewhere, each with its line."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    own = {
        node.name if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Name, ast.Attribute))
    }
    own |= {name.removeprefix("self.") for name in own if name.startswith("self.")}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            owner = ast.unparse(node.value)
            if owner.startswith(("torch.ops.", "_ATEN", "_aten")) or owner in {"self", "cls"}:
                continue
            names = [] if node.attr in own else [node.attr]
        elif isinstance(node, ast.ImportFrom):
            names = [*str(node.module).split("."), *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [part for alias in node.names for part in alias.name.split(".")]
        else:
            continue
        for name in names:
            if name.startswith("_") and not name.startswith("__") and name not in NOT_TORCHS:
                yield f"{name_of(path)}:{node.lineno} {name}"


NOT_TORCHS = {
    # Python's own, which its documentation describes or which stand nowhere else.
    *("_exit", "_getframe", "_lru_cache_wrapper", "_fields"),
    # What torch_internals.py says is safe where it is.
    *("_parameters", "_buffers", "_non_persistent_buffers_set", "_forward_pre_hooks", "_version"),
}


@pytest.mark.parametrize(
    "path",
    [
        path
        for path in FILES
        if path.name not in ("torch_internals.py", "torch_tracing.py")
        and not any(name.startswith("ray.") for name, _ in imported(path))
    ],
    ids=name_of,
)
def test_what_is_private_in_torch_stands_in_two_files(path: Path) -> None:
    assert [*private_names(path)] == []


@pytest.mark.parametrize(
    "module",
    [
        "runner.cli",
        "runner.config",
        "runner.batch.submit",
        "runner.batch.local_execution",
        "kdrun",
    ],
)
def test_importing_it_loads_neither_torch_nor_ray_nor_boto3(module: str) -> None:
    program = f"import sys, {module}; print(sorted({{'torch', 'ray', 'boto3'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
