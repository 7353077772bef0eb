"""Models written where a test runs, taken apart."""

from pathlib import Path
from textwrap import dedent

import pytest
from outlines import HEAD, Apart

from runner.graph.normalize import normalize
from runner.graph.recognition.recognize import recognize
from runner.graph.tracing.capture import capture
from runner.problems import read_problem
from runner.tree.interface import Program
from runner.tree.part import Part
from runner.tree.partition import partition


@pytest.fixture
def apart(tmp_path: Path) -> Apart:
    """Write a problem file of a level, and take it apart."""

    def run(source: str, level: str = "level3", name: str = "some_model") -> tuple[Program, Part]:
        folder = tmp_path / level
        folder.mkdir(exist_ok=True)
        file = folder / f"{name}.py"
        file.write_text(HEAD + dedent(source))
        graph = normalize(capture(read_problem(file)))
        program = Program(graph, recognize(graph))
        return program, partition(program, level, name)

    return run
