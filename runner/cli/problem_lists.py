"""Prints problems and their constants as text for people and JSON for programs."""

import json
from collections.abc import Sequence
from itertools import groupby

from rich.console import Console

from runner.problems import Problem
from runner.problems.constants import NamedLiterals
from runner.report.tables import new_table


def print_problem_list(problems: Sequence[tuple[Problem, str]], console: Console) -> None:
    """Print problems by level, each with its idea."""
    for level, group in groupby(problems, key=lambda pair: pair[0].source_level):
        members = list(group)
        console.print(f"{level} ({len(members)})", style="bold")
        width = max(len(problem.name) for problem, _ in members)
        for problem, idea in members:
            console.print(f"  {problem.name:<{width}}  {idea}", soft_wrap=True, markup=False)


def problems_json(problems: Sequence[tuple[Problem, str]]) -> str:
    """Return problems with their ideas as JSON."""
    rows = [
        {
            "problem": problem.name,
            "source_level": problem.source_level,
            "path": str(problem.path),
            "sha256": problem.sha256,
            "idea": idea,
        }
        for problem, idea in problems
    ]
    return json.dumps({"problems": rows}, indent=1)


def print_constants(problem: Problem, literals: NamedLiterals, console: Console) -> None:
    """Print the constants of a problem's file, with the line and place of each."""
    console.print(f"{problem.path}", soft_wrap=True)
    if not literals.constants:
        console.print("no named literal: nothing that --set could change")
    table = new_table(["constant", "value", "line", "in"], ["line"])
    for constant in literals.constants:
        place = "" if constant.place == "file" else constant.place
        table.add_row(constant.name, constant.text, str(constant.line), place)
    if literals.constants:
        console.print(table)
    for name, expression in literals.computed.items():
        console.print(f"computed: {name} = {expression}", soft_wrap=True)


def constants_json(problem: Problem, literals: NamedLiterals) -> str:
    """Return the constants of a problem's file as JSON."""
    rows = [
        {"name": c.name, "text": c.text, "value": c.value, "line": c.line, "place": c.place}
        for c in literals.constants
    ]
    document = {"problem": problem.name, "path": str(problem.path), "constants": rows}
    return json.dumps(document | {"computed": dict(literals.computed)}, indent=1)
