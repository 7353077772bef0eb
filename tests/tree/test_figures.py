"""Each model's tree is the outline in its docstring, written by hand as its paper's figure is."""

import ast
from pathlib import Path

import pytest
from outlines import drawn

from runner.graph.normalize import normalize
from runner.graph.recognition.recognize import recognize
from runner.graph.tracing.capture import capture
from runner.problems import read_problem
from runner.tree.interface import Program
from runner.tree.partition import partition

FIGURES = sorted((Path(__file__).parent / "figures").glob("*.py"))


@pytest.mark.parametrize("path", FIGURES, ids=lambda path: path.stem)
def test_a_model_comes_apart_as_its_figure_has_it(path: Path) -> None:
    program = normalize(capture(read_problem(path)))
    tree = partition(kernels := Program(program, recognize(program)), "level3", path.stem)
    assert kernels.kernels
    title, _, outline = (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n\n")
    assert title
    assert drawn(tree) == outline
