"""Nothing lies beside a decomposition's files that would run for its users alone."""

import importlib.util
import py_compile
from pathlib import Path

import pytest

from runner.untrusted_files import DEEPEST, read_json
from runner.verify.guard.extra_files import find_extra_files
from runner.verify.layout import read_layout


def write(directory: Path, name: str, text: str = "") -> None:
    (directory / name).parent.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text(text)


@pytest.mark.parametrize(
    "name", ["level_0_kernel/torch.py", "steps/a/statistics/__init__.py", "verification/math.so"]
)
def test_what_hides_a_module_is_told(tmp_path, name):
    write(tmp_path, name)

    ((_, fault),) = find_extra_files(tmp_path)

    assert fault.startswith("hides the module")


def test_an_init_that_does_something_is_told(tmp_path):
    write(tmp_path, "steps/a/children/__init__.py", "import torch\ntorch.relu = torch.abs\n")

    assert [*find_extra_files(tmp_path)] == [
        ("steps/a/children/__init__.py", "does something when it is imported: leave it empty")
    ]


@pytest.mark.parametrize("kind", ["UNCHECKED_HASH", "CHECKED_HASH"])
def test_bytecode_that_somebody_made_is_told(tmp_path, kind):
    write(tmp_path, "level_0_kernel/relu.py", "x = 1\n")
    file = tmp_path / "level_0_kernel/relu.py"
    py_compile.compile(str(file), invalidation_mode=py_compile.PycInvalidationMode[kind])

    ((name, fault),) = find_extra_files(tmp_path)

    assert (
        name == Path(importlib.util.cache_from_source(str(file))).relative_to(tmp_path).as_posix()
    )
    assert "is bytecode" in fault


def test_bytecode_of_another_source_is_told_and_python_s_own_is_not(tmp_path):
    write(tmp_path, "level_0_kernel/relu.py", "x = 1\n")
    file = tmp_path / "level_0_kernel/relu.py"
    bytecode = Path(py_compile.compile(str(file)) or "")
    assert [*find_extra_files(tmp_path)] == []

    other = tmp_path / "other.txt"
    other.write_text("x = 2\n")
    header = bytecode.read_bytes()[:16]
    py_compile.compile(str(other), str(bytecode))
    bytecode.write_bytes(header + bytecode.read_bytes()[16:])

    ((name, fault),) = find_extra_files(tmp_path)
    assert name == bytecode.relative_to(tmp_path).as_posix()
    assert "is bytecode that Python runs instead of the source" in fault


def test_folders_in_folders_are_counted(tmp_path):
    deep = tmp_path.joinpath(*"a" * (DEEPEST + 1))
    deep.mkdir(parents=True)
    assert read_layout(tmp_path).refusals == {".": f"has more than {DEEPEST} nested folders"}


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("verification/typing_extensions.py", "is no file of the layout"),
        ("steps/a/children.py", "is no file of the layout"),
        ("level_0_kernel/relu/__init__.py", "is no file of the layout"),
        ("steps/a/children/relu.abi3.so", "is machine code"),
        ("verification/pytest.ini", "changes how tests"),
        (".pytest.ini", "changes how tests"),
    ],
)
def test_what_others_could_import_or_obey_is_told(name, word, tmp_path):
    write(tmp_path, name)

    ((_, fault),) = find_extra_files(tmp_path)

    assert fault.startswith(word)


@pytest.mark.parametrize("name", ["pyproject.toml", "tox.ini", "setup.cfg"])
def test_a_projects_settings_are_fine_unless_pytest_reads_them(name, tmp_path):
    write(tmp_path, name, "[tool.ruff]\n")
    assert not [*find_extra_files(tmp_path)]

    write(tmp_path, name, "[tool:pytest]\naddopts = '-p evil'\n")
    assert [*find_extra_files(tmp_path)]


def test_a_key_that_stands_twice_in_json_is_refused(tmp_path):
    write(tmp_path, "tree.json", '{"nodes": {}, "nodes": {"root": {}}}')

    with pytest.raises(ValueError, match="'nodes' stands twice"):
        read_json(tmp_path / "tree.json")


def test_what_python_leaves_is_fine(tmp_path):
    write(tmp_path, "level_0_kernel/relu.py", "x = 1\n")
    write(tmp_path, "level_0_kernel/__init__.py", '"""Kernels."""\n')
    write(tmp_path, "notes/statistics.md", "1, 2, 3")
    py_compile.compile(str(tmp_path / "level_0_kernel/relu.py"))

    assert not [*find_extra_files(tmp_path)]
