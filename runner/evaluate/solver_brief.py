"""Writes the brief for a solver: one component, its places, the values there, and the findings."""

from collections.abc import Sequence
from pathlib import Path

from runner.evaluate.solutions import CLASS
from runner.evaluate.table import format_speed
from runner.quantities import flops, pluralize, size
from runner.report.units import seconds
from runner.store.evaluation import Evaluation, SolutionEvaluation
from runner.tree.document import Tree
from runner.untrusted_files import read_text

_TEXT = """# Write a faster {name}

The file `{component_file}` is one component of a PyTorch model. Write `{solution_file}`, which
computes the same, faster, on {processor_note}.

## The file to write

- It has `class {cls}(nn.Module)`, built with the arguments that `get_init_inputs()` of the
  component returns. Its forward has the component's parameters.
- Its weights have the component's names and shapes. If it holds them in another form, the file
  defines `convert_weights(state_dict)`, which takes the component's weights by name and returns
  those of `{cls}` by name.
- It imports torch, the standard library, and what PyTorch can call: `torch.compile`, C++ inline
  (`torch.utils.cpp_extension.load_inline`), Triton. It runs without a network, and writes only
  where compilers keep their files.

## The component

It is a {level} ({operations}), {flops} and {bytes}, and stands in {places} of {problem}.

```python
{code}
```

## The values that reach it in the model

{values}

## How it is judged

- On inputs and weights from secret seeds, and on the values at each of its places: shapes, dtypes,
  strides, inputs that stay as they are, the same result twice.
- Its error against float64 may be one tolerance of the dtype, or four times the component's own.
- It is measured in turn with the component, on new inputs, with a flushed cache, by a clock outside
  of its process; the outputs of measured calls are compared.
- These count as wrong: answers that are kept from call to call, weights other than the given ones,
  lower precision inside, parts of the work left out, work that is put off until after forward().
"""


def write_brief(
    directory: Path,
    tree: Tree,
    component: str,
    values: Sequence[str],
    paths: tuple[Path, Path],
    threads: int,
    history: Sequence[str],
) -> str:
    """Return the brief; `paths` are the component's copy and the file to write."""
    nodes = [node for node in tree.nodes.values() if node.path == component]
    text = _TEXT.format(
        name=Path(component).stem,
        component_file=paths[0].name,
        solution_file=paths[1].name,
        cls=CLASS,
        processor_note=f"the CPU, with {pluralize(threads, 'thread')}",
        level=nodes[0].level,
        operations=", ".join(nodes[0].operations),
        flops=flops(nodes[0].flops),
        bytes=size(nodes[0].bytes),
        places=pluralize(len(nodes), "place"),
        problem=directory.resolve().name,
        code=read_text(directory / component).strip(),
        values="\n".join(values),
    )
    if history:
        text += "\n## Findings so far\n\n" + "\n".join(f"- {line}" for line in history) + "\n"
    return text


def describe_finding(evaluation: Evaluation | None, number: int, ended: str | None) -> str:
    """Return the finding on what one round delivered."""
    suffix = f"; the command {ended}" if ended else ""
    if evaluation is None:
        return f"round {number}: no solution was written{suffix}"
    (solution,) = evaluation.solutions
    return f"round {number}: {describe_solution(solution)}{suffix}"


def describe_solution(solution: SolutionEvaluation) -> str:
    """Return the verdict on a solution and its speed in one line."""
    if solution.speed is None:
        return f"{solution.judgement}: {solution.reason}" if solution.reason else "right"
    speed = solution.speed
    times = f"{seconds(speed.before_median_s)} before, {seconds(speed.after_median_s)} after"
    return f"right, {times}: {format_speed(speed, ' times as fast')}"
