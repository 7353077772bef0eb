"""Defines `kdrun evaluate`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from runner.cli.completion import run_names_or_directories
from runner.cli.help import examples
from runner.cli.options import JSON, SettingsCommand, new_console, settings_from

_MOST_STRANGERS = 3
"""Number of files without a component up to which each is named."""
_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command(
    cls=SettingsCommand,
    settings=("output", "timeout", "memory", "rounds", "pass_env"),
    help_texts={
        "output": "Directory in which the name of a run is looked up; default output.",
        "memory": "Memory for an evaluation, as 16GiB; default 85% of what is free.",
        "timeout": "Seconds for each decomposition, and for each workload of a solver; default "
        "1800.",
        "rounds": "With --solver: most runs of the command for each workload; default 3.",
        "pass_env": "With --solver: environment variables that the command gets; repeatable; "
        "default none.",
    },
    epilog=examples(
        "kdrun evaluate output/level3/llama --template NAME --solutions mine",
        "kdrun evaluate output/level3/llama --solutions mine --write llama_fast.py",
        "kdrun evaluate output --solutions mine",
    ),
)
@click.argument("name", metavar="RUN|DIR", shell_complete=run_names_or_directories)
@click.option(
    "--solutions",
    type=_FOLDER,
    help="Folder of solutions, each file named as its component; with --template, the folder to "
    "write to; default for that: stdout.",
)
@click.option(
    "--only", multiple=True, help="Name of a solution to evaluate; repeatable; default all."
)
@click.option(
    "--template",
    metavar="NAME",
    help="Component to write a file to begin with for, with its own code as ModelNew; default "
    "none.",
)
@click.option(
    "--write",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for the whole problem with all right solutions inside, as ModelNew; default none.",
)
@click.option(
    "--solver",
    metavar="COMMAND",
    help="Command that reads a brief on stdin and writes the file {output}; default none.",
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=10,
    help="With --solver: number of workloads, the largest first; default 10.",
)
@click.option(
    "--operation",
    multiple=True,
    help="With --solver: operation, such as softmax, whose kernels are solved; repeatable; default "
    "fusions, and kernels outside of them.",
)
@click.option("--no-speed", is_flag=True, help="Judge, and measure nothing.")
@click.option("--no-compile", is_flag=True, help="Do not measure torch.compile beside it.")
@JSON
def evaluate(
    name: str,
    solutions: Path | None,
    only: tuple[str, ...],
    template: str | None,
    write: Path | None,
    solver: str | None,
    top: int,
    operation: tuple[str, ...],
    no_speed: bool,
    no_compile: bool,
    config: Path | None,
    as_json: bool,
    **flags: Any,
) -> int:
    """Judge better kernels: right, faster, and what the model gains.

    RUN|DIR is a decomposition, a run's name, or a directory with decompositions. A solution is
    right if it equals its component on new inputs, and on the values that reach it in the model.

    Exit code 0 if all solutions are right, else 1.
    """
    from runner.errors import KdrunError, UsageError
    from runner.report.subject import find_subject
    from runner.store.directory import refuse_unwritable, write_atomically
    from runner.store.evaluation import EVALUATION_FILE

    settings = settings_from(flags, config)
    subject = find_subject(name, settings.output)
    if template is not None:
        return _write_template(subject, template, solutions)
    if solutions is None:
        raise UsageError("no --solutions", hint="name a folder of solutions, or --template NAME")
    if write is not None and len(subject.decompositions) > 1:
        raise UsageError("--write: for one decomposition", hint="name its directory")
    if write is not None:
        refuse_unwritable(write, "--write")
    from runner.batch.machine import cores
    from runner.evaluate.requests import EvaluationRequest
    from runner.evaluate.runs import evaluate_all
    from runner.evaluate.table import show_evaluation

    if solver is not None:
        _run_solver(subject, solver, solutions, top, operation, settings)
    names = [name.removesuffix(".py") for name in only]
    requests = [
        EvaluationRequest(
            directory=directory,
            solutions=solutions.resolve(),
            names=names,
            compiled=not no_compile,
            measured=not no_speed,
            threads=cores(),
            timeout_s=settings.timeout,
        )
        for directory in _find_directories(subject, name, solutions, names)
    ]
    for request in requests:
        if no_speed and _has_speeds(request.directory):
            path = request.directory / EVALUATION_FILE
            click.echo(f"but mind: {path} has speeds, and this one will have none", err=True)
    evaluations = []
    console = new_console()

    def on_done(evaluation: Any, text: str | None) -> None:
        evaluations.append(evaluation)
        if not as_json:
            show_evaluation(evaluation, console)
        if write is not None and text is not None:
            write_atomically(write, text, "--write")
            click.echo(f"wrote {write}", err=True)
        elif write is not None:
            wrong = "the model with the right solutions is not" if evaluation.model else "none is"
            click.echo(f"did not write {write}: {wrong} right", err=True)

    failures: list[KdrunError] = []

    def on_failure(error: KdrunError) -> None:
        failures.append(error)
        click.echo(f"kdrun: {error}", err=True)

    def on_progress(request: Any, part: str) -> None:
        problem = f"{request.directory.parent.name}/{request.directory.name}"
        click.echo(f"{problem}: {part}", err=True)

    evaluate_all(
        requests,
        memory_bytes=settings.memory,
        on_done=on_done,
        on_failure=on_failure,
        on_progress=on_progress,
    )
    if as_json:
        lines = [item.model_dump_json(indent=1, exclude_none=True) for item in evaluations]
        click.echo(lines[0] if len(lines) == 1 else f"[{','.join(lines)}]")
    return 0 if not failures and all(item.is_all_right for item in evaluations) else 1


def _find_directories(subject: Any, name: str, solutions: Path, names: Sequence[str]) -> list[Path]:
    """Return the decompositions that solutions are for; name the solutions that are for none.

    Raises:
        UsageError: there is no solution for any of them.
    """
    from runner.errors import UsageError
    from runner.evaluate.solutions import find_solutions, list_strangers

    trees = {problem.directory.resolve(): problem.tree for problem in subject.decompositions}
    strangers = list_strangers([*trees.values()], solutions)
    if len(strangers) > _MOST_STRANGERS:
        count = f"{len(strangers)} files are named as no component of {name}"
        strangers = [f"{solutions}: {count}: they may be for other models"]
    for sentence in strangers:
        click.echo(f"but mind: {sentence}", err=True)
    directories = [path for path, tree in trees.items() if find_solutions(tree, solutions, names)]
    if directories:
        return directories
    existing = {s.name for tree in trees.values() for s in find_solutions(tree, solutions)}
    if existing:
        first = ", ".join(sorted(existing)[:_MOST_STRANGERS])
        raise UsageError(f"--only {names[0]}: no such solution", hint=f"there is {first}")
    raise UsageError(
        f"{solutions}: no solution for {name}",
        hint="name a file as a component: `kdrun show DIR --all` lists them",
    )


def _has_speeds(directory: Path) -> bool:
    """Return whether a decomposition has an evaluation with speeds."""
    from runner.errors import DecompositionError
    from runner.store.evaluation import Evaluation

    try:
        earlier = Evaluation.read(directory)
    except DecompositionError:
        return False
    return earlier is not None and earlier.is_measured


def _run_solver(
    subject: Any,
    command: str,
    solutions: Path,
    top: int,
    operations: tuple[str, ...],
    settings: Any,
) -> None:
    """Let the command write solutions for the largest workloads of each decomposition."""
    import tempfile

    from runner.batch.child.child_process import close_fork_server
    from runner.batch.cluster import usable_bytes
    from runner.batch.decomposer.decomposer_process import select_decomposer
    from runner.batch.machine import cores
    from runner.evaluate.solver import SolverRun, choose_workloads, solve

    chosen = select_decomposer(settings.model_copy(update={"decomposer": command}), "--solver")
    assert chosen is not None
    for problem in subject.decompositions:
        run = SolverRun(
            command=chosen,
            directory=problem.directory.resolve(),
            solutions=solutions.resolve(),
            threads=cores(),
            memory_bytes=usable_bytes(settings.memory),
            timeout_s=settings.timeout,
        )
        components = choose_workloads(problem.tree, top, operations)
        with tempfile.TemporaryDirectory(prefix="kdrun-") as scratch:
            try:
                solve(run, components, Path(scratch), lambda line: click.echo(line, err=True))
            finally:
                close_fork_server()


def _write_template(subject: Any, name: str, folder: Path | None) -> int:
    from runner.errors import UsageError
    from runner.evaluate.solutions import find_component, write_template

    faults = []
    for problem in subject.decompositions:
        try:
            component = find_component(problem.tree, name)
        except UsageError as error:
            faults.append(error)
            continue
        text = write_template(problem.directory, component)
        if folder is None:
            click.echo(text, nl=False)
            return 0
        path = folder / Path(component).name
        if path.exists():
            raise UsageError(f"{path}: exists", hint="delete it, or write to another folder")
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        click.echo(path)
        return 0
    raise faults[0] if faults else UsageError(f"{name}: no decomposition to look in")
