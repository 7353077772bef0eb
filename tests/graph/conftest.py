"""Small models written where a test runs, captured as programs."""

import textwrap
from pathlib import Path

import pytest
from programs import FILE, Program, Write

from runner.graph import Graph, Mode, normalize
from runner.graph.tracing.capture import capture
from runner.problems import Problem, read_problem


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """`write("return x + 1")`: a problem whose forward, inputs, __init__ or classes are given."""

    def written(
        forward: str,
        *,
        inputs: str = "torch.randn(4, 8)",
        arguments: str = "x",
        init: str = "pass",
        classes: str = "",
    ) -> Problem:
        text = FILE.format(
            forward=textwrap.indent(textwrap.dedent(forward), 8 * " "),
            init=textwrap.indent(textwrap.dedent(init), 8 * " "),
            classes=textwrap.dedent(classes),
            arguments=arguments,
            inputs=inputs,
        )
        path = tmp_path / "problem.py"
        path.write_text(text, encoding="utf-8")
        return read_problem(path)

    return written


@pytest.fixture
def program(write: Write) -> Program:
    """The normalised program of a model written inline."""

    def captured(forward: str, mode: Mode = "eval", **parts: str) -> Graph:
        return normalize(capture(write(forward, **parts), mode))

    return captured
