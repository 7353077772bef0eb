"""A pipe, a device or an endless file in a directory is told in one line; nothing waits for it."""

import os
import signal
from pathlib import Path

import pytest

from runner.errors import DecompositionError
from runner.tree.document import Tree
from runner.verify.reading_trees import read_mode

TREE = "decomposition_tree.json"
FILES = (
    *(TREE, "original.py", "level_0_kernel/relu.py", "level_1_fusion/conv_relu.py"),
    *(f"steps/step_1_conv_relu_to_kernel/{name}" for name in ("refactored.py", "weight_map.json")),
    *("steps/step_1_conv_relu_to_kernel/children/relu.py", "verification/composition_test.py"),
)


@pytest.fixture(autouse=True)
def not_for_ever():
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.alarm(100)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def a_pipe(file: Path) -> None:
    os.mkfifo(file)


def a_folder(file: Path) -> None:
    file.mkdir()


def much_text(file: Path) -> None:
    with file.open("wb") as text:
        text.truncate(1 << 40)


@pytest.mark.parametrize(
    ("file", "kind"), [*((file, a_pipe) for file in FILES), (TREE, a_folder), (TREE, much_text)]
)
def test_what_is_no_file_of_text_fails(fusion, judged, file, kind):
    (fusion.directory / file).unlink()
    kind(fusion.directory / file)

    verdict = judged(fusion, trials=1)

    assert verdict.status == "failed"
    assert "\n" not in str(verdict.first_failure)


def test_a_link_to_a_device_is_refused_before_anything_runs(fusion, judged):
    (fusion.directory / TREE).unlink()
    (fusion.directory / TREE).symlink_to("/dev/zero")

    assert "is a symbolic link to /dev/zero" in judged(fusion, trials=1).first_failure


@pytest.mark.parametrize("kind", [a_pipe, a_folder, much_text])
def test_commands_that_read_a_tree_name_the_file(fusion, kind):
    (fusion.directory / TREE).unlink()
    kind(fusion.directory / TREE)

    with pytest.raises(DecompositionError, match=TREE):
        Tree.read(fusion.directory)
    assert read_mode(fusion.directory) is None
