"""Renders the brief: the instructions to decompose one problem by hand, with its facts."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import groupby
from pathlib import Path
from string import Template
from typing import Literal

from runner.problems import Problem
from runner.prompts.facts import Fact, Facts, TensorFacts
from runner.quantities import join_first

VERSION = 3
"""Version of the brief's wording, since another wording may be understood differently."""
MOST_FINDINGS = 12
"""Findings of a verdict in a later round's brief; further ones mostly follow from the first."""
MOST_PLACES = 8
"""Module paths that a line names."""

_LEVEL_TASKS = {
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
_SPECIALISED = (
    "- values steer the program, so that it is compared on these values alone: the tree's metadata "
    'say so in `"specialisations"`, a list of sentences:'
)


@dataclass(frozen=True, slots=True)
class Brief:
    """The brief for one problem, in two parts: the method, equal for all problems, and the task."""

    method: str
    task: str

    def text(self) -> str:
        return f"{self.method}\n{self.task}"

    def messages(self) -> str:
        """Return the brief as JSON: a system and a user message of a chat."""
        messages = [
            {"role": "system", "content": self.method},
            {"role": "user", "content": self.task},
        ]
        return json.dumps(messages, indent=1, ensure_ascii=False) + "\n"


def render_brief(
    problem: Problem,
    facts: Facts,
    output: Path,
    *,
    visible_path: Path | None = None,
    mode: Literal["eval", "train"] = "eval",
    flags: Sequence[str] = (),
) -> Brief:
    """Return the brief for a problem; the same arguments give the same text.

    `visible_path` is the path of the problem's file as its reader sees it; `flags` are added to the
    `kdrun verify` command in the text.
    """
    task = _template("task").substitute(
        problem=visible_path or problem.path,
        what=f"source level {problem.level}" if problem.level else "of no source level",
        asked="\n\n".join(
            [_LEVEL_TASKS[problem.source_level], *([_TRAIN] if mode == "train" else [])]
        ),
        output=output,
        command=" ".join(["kdrun verify", *flags, str(output)]),
        source=problem.path.read_text(encoding="utf-8-sig").strip("\n"),
        facts="\n".join(_fact_lines(facts)),
    )
    return Brief(_template("method").substitute(version=VERSION), task)


def render_later_round(
    brief: Brief, output: Path, number: int, rounds: int, findings: Sequence[str]
) -> str:
    """Return the text of a later round: the brief, and the first findings on the last delivery."""
    finding_lines = [f"- {finding}" for finding in findings[:MOST_FINDINGS]]
    if len(findings) > MOST_FINDINGS:
        finding_lines.append(f"- and {len(findings) - MOST_FINDINGS} more")
    round_text = _template("again").substitute(
        round=number, rounds=rounds, output=output, findings="\n".join(finding_lines)
    )
    return brief.text() + round_text


def _fact_lines(facts: Facts) -> Iterator[str]:
    dtype = _usual_dtype(facts)
    if facts.capture is None:
        yield f"kdrun could not write this program down: {facts.reason}. So its single operations"
        yield "are not known: read them in the source."
    else:
        yield "kdrun wrote the program down as it runs, at its exact shapes."
    yield f"Tensors are {dtype} and contiguous unless said otherwise; strides are in elements."
    yield ""
    yield f"- inputs: {_format_tensors(facts.inputs, dtype)}"
    yield f"- outputs: {_format_tensors(facts.outputs, dtype)}"
    yield f"- parameters and buffers: {facts.states or 'none'}"
    if facts.unused:
        yield f"- of these no operation reads: {_format_paths(facts.unused)}"
    if facts.specialisations:
        yield _SPECIALISED
        yield from (f"  - {sentence}" for sentence in facts.specialisations)
    yield ""
    yield from _operation_lines(facts, dtype) if facts.capture else _call_lines(facts, dtype)


def _operation_lines(facts: Facts, dtype: str) -> Iterator[str]:
    total = sum(len(fact.places) for fact in facts.operations)
    operations_text = "one logical operation" if total == 1 else f"{total} logical operations"
    yield f"Its {operations_text}, without views. Equal ones are counted (×) and stand"
    yield "where the first of them runs; `a = b, c` says which primitives spell `a`; weights follow"
    yield "`;`; the module and the line of the source stand in brackets."
    yield ""
    yield from (_format_fact(fact, dtype) for fact in facts.operations)


def _call_lines(facts: Facts, dtype: str) -> Iterator[str]:
    if not facts.calls:
        yield "A plain run calls no module."
        return
    yield "A plain run calls these modules. What the author calls as functions, and every view, is"
    yield "in the source alone."
    yield ""
    yield from (_format_fact(fact, dtype) for fact in facts.calls)


def _format_fact(fact: Fact, dtype: str) -> str:
    """Return `- linear ×6: 4x8 → 4x8; weight 8x8, bias 8  [blocks.*.fc, line 13]`.

    `dtype` is the usual one, which is not written.
    """
    is_primitive = fact.spelling.partition("(")[0] == fact.name
    title = fact.spelling if is_primitive else fact.name
    count_text = f" ×{len(fact.places)}" if len(fact.places) > 1 else ""
    definition = f" = {fact.spelling}" if fact.spelling and not is_primitive else ""
    inputs, outputs = (_format_tensors(tensors, dtype) for tensors in (fact.inputs, fact.outputs))
    weights = f"; {_format_tensors(fact.weights, dtype)}" if fact.weights else ""
    line_text = f"line {', '.join(map(str, fact.lines))}" if fact.lines else ""
    source = ", ".join(filter(None, (_format_paths(fact.places), line_text)))
    return f"- {title}{count_text}{definition}: {inputs} → {outputs}{weights}" + (
        f"  [{source}]" if source else ""
    )


def _format_tensors(tensors: Sequence[TensorFacts], dtype: str) -> str:
    """Return `x 4x197x384, mask 4x1x128x128 bool`; equal neighbours are counted: `2 × 4x8`."""
    texts = []
    for tensor, equal in groupby(tensors):
        count = len(list(equal))
        words = [
            tensor.name,
            "x".join(map(str, tensor.shape)) or "scalar",
            tensor.dtype if tensor.dtype != dtype else "",
            f"stride {tensor.stride}" if tensor.stride is not None else "",
        ]
        texts.append((f"{count} × " if count > 1 else "") + " ".join(filter(None, words)))
    return ", ".join(texts) or "nothing"


def _format_paths(paths: Iterable[str]) -> str:
    """Return module paths, each once, with `*` for a number: `blocks.*.qkv`."""
    forms = list(dict.fromkeys(re.sub(r"(?<=\.)\d+(?=\.|$)", "*", path) for path in paths if path))
    return join_first(forms, MOST_PLACES)


def _usual_dtype(facts: Facts) -> str:
    """Return the dtype that most tensors have; float32 without any tensor."""
    counts: Counter[str] = Counter()
    for fact in (*facts.operations, *facts.calls):
        counts.update(tensor.dtype for tensor in (*fact.inputs, *fact.weights, *fact.outputs))
    counts.update(tensor.dtype for tensor in (*facts.inputs, *facts.outputs))
    return counts.most_common(1)[0][0] if counts else "float32"


@cache
def _template(name: str) -> Template:
    path = resources.files("runner.prompts").joinpath("templates", f"{name}.md")
    return Template(path.read_text(encoding="utf-8"))
