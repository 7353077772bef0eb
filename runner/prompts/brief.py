"""This file knows about the brief: what somebody is told who takes one problem apart by hand."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from string import Template
from typing import Literal

from runner.problems import Problem
from runner.prompts import condensation
from runner.prompts.facts import Facts

VERSION = 2
"""Of the brief's wording: another one may be understood otherwise."""
MOST_FINDINGS = 12
"""Of a verdict, told to who is to do better; the rest mostly follows from the first."""

_ASKED = {
    "level1": "It is of source level 1, a single operation: the whole problem is **one kernel**, "
    "the root of the tree. One component file, no steps; the composition test runs that kernel.",
    "level2": "It is of source level 2, a chain of a few operations: the root is **a fusion** of "
    "its kernels, with one step.",
    "level3": "It is of source level 3: the root is **a model** with its full hierarchy, or **a "
    "layer** where the problem is one building block.",
    "custom": "It belongs to no source level: the root is a model, a layer, a fusion or a single "
    "kernel, by its own structure.",
}
_TRAIN = (
    'It is run in training mode: the metadata of the tree are `{"mode": "train"}`, and what the '
    "forward leaves in buffers (running statistics) has to be equal, too."
)
_STEERED = (
    "- values steer the program, so that it is compared on these values alone: the tree's metadata "
    'say so in `"specialisations"`, a list of sentences:'
)


@dataclass(frozen=True, slots=True)
class Brief:
    """The brief for one problem, in two parts: what always holds, and the task."""

    method: str
    task: str

    def text(self) -> str:
        return f"{self.method}\n{self.task}"

    def messages(self) -> str:
        """As the messages of a chat: JSON."""
        said = [
            {"role": "system", "content": self.method},
            {"role": "user", "content": self.task},
        ]
        return json.dumps(said, indent=1, ensure_ascii=False) + "\n"


def render(
    problem: Problem,
    facts: Facts,
    output: Path,
    *,
    place: Path | None = None,
    mode: Literal["eval", "train"] = "eval",
    flags: Sequence[str] = (),
) -> Brief:
    """The brief for a problem, the same for the same arguments.

    `place` is where the problem's file is for who reads this; `flags` are those of the command that
    judges.
    """
    task = _template("task").substitute(
        problem=place or problem.path,
        what=f"source level {problem.level}" if problem.level else "of no source level",
        asked="\n\n".join([_ASKED[problem.source_level], *([_TRAIN] if mode == "train" else [])]),
        output=output,
        command=" ".join(["kdrun verify", *flags, str(output)]),
        source=problem.path.read_text(encoding="utf-8-sig").strip("\n"),
        facts="\n".join(_facts(facts)),
    )
    return Brief(_template("method").substitute(version=VERSION), task)


def round_after(
    brief: Brief, output: Path, number: int, rounds: int, findings: Sequence[str]
) -> str:
    """The text of a later round: the brief, and the first findings on what was delivered."""
    told = [f"- {finding}" for finding in findings[:MOST_FINDINGS]]
    if len(findings) > MOST_FINDINGS:
        told.append(f"- and {len(findings) - MOST_FINDINGS} more")
    again = _template("again").substitute(
        round=number, rounds=rounds, output=output, findings="\n".join(told)
    )
    return brief.text() + again


def _facts(facts: Facts) -> Iterator[str]:
    dtype = _usual_dtype(facts)
    if facts.capture is None:
        yield f"kdrun could not write this program down: {facts.reason}. So its single operations"
        yield "are not known: read them in the source."
    else:
        yield "kdrun wrote the program down as it runs, at its exact shapes."
    yield f"Tensors are {dtype} and contiguous unless said otherwise; strides are in elements."
    yield ""
    yield f"- inputs: {condensation.tensors(facts.inputs, dtype)}"
    yield f"- outputs: {condensation.tensors(facts.outputs, dtype)}"
    yield f"- parameters and buffers: {facts.states or 'none'}"
    if facts.unused:
        yield f"- of these no operation reads: {condensation.paths(facts.unused)}"
    if facts.specialisations:
        yield _STEERED
        yield from (f"  - {sentence}" for sentence in facts.specialisations)
    yield ""
    yield from _operations(facts, dtype) if facts.capture else _calls(facts, dtype)


def _operations(facts: Facts, dtype: str) -> Iterator[str]:
    total = sum(len(fact.places) for fact in facts.operations)
    what = "one logical operation" if total == 1 else f"{total} logical operations"
    yield f"Its {what}, without views. Equal ones are counted (×) and stand"
    yield "where the first of them runs; `a = b, c` says which primitives spell `a`; weights follow"
    yield "`;`; the module and the line of the source stand in brackets."
    yield ""
    yield from condensation.lines(facts.operations, dtype)


def _calls(facts: Facts, dtype: str) -> Iterator[str]:
    if not facts.calls:
        yield "A plain run calls no module."
        return
    yield "A plain run calls these modules. What the author calls as functions, and every view, is"
    yield "in the source alone."
    yield ""
    yield from condensation.lines(facts.calls, dtype)


def _usual_dtype(facts: Facts) -> str:
    """The one that most tensors have."""
    counts: Counter[str] = Counter()
    for fact in (*facts.operations, *facts.calls):
        counts.update(one.dtype for one in (*fact.inputs, *fact.weights, *fact.outputs))
    counts.update(one.dtype for one in (*facts.inputs, *facts.outputs))
    return counts.most_common(1)[0][0] if counts else "float32"


@cache
def _template(name: str) -> Template:
    path = resources.files("runner.prompts").joinpath("templates", f"{name}.md")
    return Template(path.read_text(encoding="utf-8"))
