"""Lets an external command write solutions, workload by workload, in rounds.

The command gets a brief on its standard input and writes one file. It runs with the environment,
the limits and the words of a decomposer's command.
"""

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from runner.batch.child.child_process import Request, run_child
from runner.batch.child.problem_logs import hide_credentials
from runner.batch.decomposer import decomposer_process
from runner.errors import KdrunError, UsageError
from runner.evaluate.requests import EvaluationRequest, SolverFacts, SolverRequest
from runner.evaluate.runs import run_request
from runner.evaluate.solutions import CLASS
from runner.evaluate.table import format_speed
from runner.quantities import flops, pluralize, size
from runner.report.units import seconds
from runner.store.evaluation import Evaluation, SolutionEvaluation
from runner.store.result import Decomposer
from runner.tree.document import ROOT, Tree
from runner.untrusted_files import read_text

_COMMAND_SHARE = 0.8
"""Share of a round's time that the command gets; the rest is for judging what it wrote."""
_BYTE_FLOPS = 5
"""Floating-point operations that take about as long as moving one byte."""
_LARGEST_SOLUTION = 1 << 20
_LONGEST_LINE = 200
"""Characters of a command's last line in a finding."""

_BRIEF_TEXT = """# Write a faster {name}

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


@dataclass(frozen=True, slots=True)
class SolverRun:
    """The settings of a solver for one decomposition."""

    command: Decomposer
    directory: Path
    solutions: Path
    """Folder for right solutions."""
    threads: int
    memory_bytes: int
    timeout_s: float
    """Seconds for one workload, all rounds together."""


def choose_workloads(tree: Tree, count: int, operations: Sequence[str] = ()) -> list[str]:
    """Return the components that take most of the model, by an estimate of their time.

    `operations`: choose kernels that run one of these; else fusions, and kernels outside of them.
    """
    parents = {child: key for key, node in tree.nodes.items() for child in node.children}
    costs: dict[str, int] = {}
    for key, node in tree.nodes.items():
        in_fusion = key != ROOT and tree.nodes[parents[key]].level == "fusion"
        is_chosen = (
            node.operation in operations
            if operations
            else node.level in {"fusion", "kernel"} and not in_fusion
        )
        if is_chosen:
            cost = node.flops + _BYTE_FLOPS * node.bytes
            costs[node.path] = costs.get(node.path, 0) + cost
    if operations and not costs:
        names = sorted({node.operation for node in tree.nodes.values() if node.operation})
        raise UsageError(
            f"--operation {operations[0]}: no kernel of this name",
            hint=f"it has {', '.join(names)}",
        )
    return sorted(costs, key=lambda path: -costs[path])[:count]


def solve(
    run: SolverRun, components: Sequence[str], scratch: Path, report: Callable[[str], None]
) -> None:
    """Run the command for each component; copy the best right solution to the folder.

    `report` gets a line for each round.
    """
    tree = Tree.read(run.directory)
    run.solutions.mkdir(parents=True, exist_ok=True)
    for number, component in enumerate(components):
        folder = scratch / str(number)
        folder.mkdir()
        _solve_component(run, tree, component, folder, report)


def _solve_component(
    run: SolverRun, tree: Tree, component: str, folder: Path, report: Callable[[str], None]
) -> None:
    name = Path(component).stem
    workplace, delivered, record = (folder / n for n in ("work", "delivered", ".command"))
    for path in (workplace, delivered, record):
        path.mkdir()
    copy, solution = workplace / "component.py", workplace / f"{name}.py"
    values = _collect_values(run, component, record)
    history: list[str] = []
    best = 0.0
    deadline = time.monotonic() + run.timeout_s
    for number in range(1, run.command.rounds + 1):
        remaining_s = deadline - time.monotonic()
        share_s = remaining_s / (run.command.rounds - number + 1) * _COMMAND_SHARE
        if share_s < 1:
            break
        shutil.copy(run.directory / component, copy)
        brief = workplace / "brief.md"
        text = _write_brief(
            run.directory, tree, component, values, (copy, solution), run.threads, history
        )
        brief.write_text(text, encoding="utf-8")
        command = decomposer_process.build_command(
            run.command, workplace, {"problem": copy, "output": solution, "brief": brief}
        )
        log = record / "log"
        log.unlink(missing_ok=True)
        outcome = decomposer_process.run_in_child(command, record, log, share_s)
        evaluation = _judge(run, solution, delivered, deadline - time.monotonic())
        finding = _describe_finding(evaluation, number, outcome.how)
        if evaluation is None and (last_line := _read_last_line(run, log)):
            finding += f"; its last line: {last_line}"
        report(f"{name}: {finding}")
        history.append(finding)
        speed = evaluation.solutions[0].speed if evaluation else None
        if speed is not None and speed.speedup > best:
            best = speed.speedup
            shutil.copy(delivered / solution.name, run.solutions / solution.name)
        if not outcome.started or (speed is not None and speed.lowest > 1):
            break


def _read_last_line(run: SolverRun, log: Path) -> str:
    """Return the last line that the command printed, without credentials; empty if none."""
    if not log.is_file():
        return ""
    hide_credentials(log, extra_names=run.command.pass_env)
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")[:_LONGEST_LINE]


def _collect_values(run: SolverRun, component: str, folder: Path) -> list[str]:
    """Return a line for each tensor that reaches the component in the model."""
    request = SolverRequest(directory=run.directory, component=component, threads=run.threads)
    outcome = run_child(
        Request(
            function="runner.evaluate.solver_facts:collect_facts_in_child",
            argument=request.model_dump_json(),
            directory=folder,
            log=folder / "log",
            memory_bytes=run.memory_bytes,
            timeout_s=run.timeout_s,
        )
    )
    if outcome.answer is None:
        raise KdrunError(f"{run.directory}: running the model {outcome.describe_end()}")
    facts = SolverFacts.model_validate_json(outcome.answer)
    if facts.error is not None:
        raise KdrunError(facts.error)
    return facts.lines


def _judge(run: SolverRun, solution: Path, delivered: Path, timeout_s: float) -> Evaluation | None:
    """Judge what the command wrote; None if that is no file."""
    if solution.is_symlink() or not solution.is_file():
        return None
    if solution.stat().st_size > _LARGEST_SOLUTION:
        return None
    shutil.copy(solution, delivered / solution.name)
    request = EvaluationRequest(
        directory=run.directory,
        solutions=delivered,
        names=[solution.stem],
        compiled=False,
        in_model=False,
        threads=run.threads,
        timeout_s=max(timeout_s, 60.0),
    )
    scratch = delivered.parent / "judge"
    scratch.mkdir(exist_ok=True)
    return run_request(request, scratch, run.memory_bytes).evaluation


def _write_brief(
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
    text = _BRIEF_TEXT.format(
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


def _describe_finding(evaluation: Evaluation | None, number: int, ended: str | None) -> str:
    """Return the finding on what one round delivered."""
    suffix = f"; the command {ended}" if ended else ""
    if evaluation is None:
        return f"round {number}: no solution was written{suffix}"
    (solution,) = evaluation.solutions
    return f"round {number}: {_describe_solution(solution)}{suffix}"


def _describe_solution(solution: SolutionEvaluation) -> str:
    """Return the verdict on a solution and its speed in one line."""
    if solution.speed is None:
        return f"{solution.judgement}: {solution.reason}" if solution.reason else "right"
    speed = solution.speed
    times = f"{seconds(speed.before_median_s)} before, {seconds(speed.after_median_s)} after"
    return f"right, {times}: {format_speed(speed, ' times as fast')}"
