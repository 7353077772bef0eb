"""This file knows about the command line: it parses, calls and prints. No logic lives here.

What a command needs is imported inside it: `kdrun --help` loads neither torch nor Ray.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import click

from runner import __version__
from runner.cli_agents import decomposer_options, prompt
from runner.cli_clusters import INTERRUPTED, ON_CLUSTER, logs, sent, stop
from runner.errors import KdrunError

LISTED = 20

F = TypeVar("F", bound=Callable[..., Any])


def main() -> None:
    """The command `kdrun`: every error is one line on stderr, and an exit code."""
    try:
        code = cli.main(prog_name="kdrun", standalone_mode=False)
    except click.ClickException as error:
        _fail(error.format_message())
        code = error.exit_code
    except KdrunError as error:
        _fail(str(error))
        code = error.exit_code
    except (KeyboardInterrupt, click.Abort):
        _fail("interrupted")
        code = INTERRUPTED
    sys.exit(code)


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=False)
@click.version_option(__version__, prog_name="kdrun", message="%(prog)s %(version)s")
def cli() -> None:
    """Take PyTorch models apart into kernels at their exact shapes, and prove the parts.

    Exit codes: 0 every problem passed, 1 at least one did not, 2 wrong usage or configuration,
    130 interrupted.
    """


def working_options(command: F) -> F:
    """Options of everything that runs a model."""
    for option in reversed(
        (
            click.option("--device", type=click.Choice(["cpu", "cuda", "auto"])),
            click.option("--trials", type=int, help="Seeds for each comparison; default 2."),
            click.option(
                "--power",
                is_flag=True,
                default=None,
                help="Make each kernel wrong, too, and see a comparison fail.",
            ),
            click.option("--timeout", type=float, help="Seconds for one problem; default 1800."),
            click.option("--memory", help="For problems here, as 16GiB; default 85% of free."),
            click.option("--config", type=click.Path(path_type=Path), help="A YAML file."),
            click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout."),
        )
    ):
        command = option(command)
    return command


STORE = click.option("--store", help="s3://bucket/prefix, or a directory.")
OUTPUT = click.option(
    "--output", type=click.Path(path_type=Path), help="Where results go; default output/."
)
MODE = click.option("--mode", type=click.Choice(["eval", "train"]), help="Default eval.")


@cli.command()
@click.option("--level", type=int, multiple=True, help="1, 2 or 3; repeatable.")
@click.option("--problem", multiple=True, help="Glob, file or MODULE:FUNCTION; repeatable.")
@click.option("--start", type=int, help="Skip so many of the sorted selection.")
@click.option("--count", type=int, help="Take so many of the sorted selection.")
@click.option("--data", type=click.Path(path_type=Path), help="Directory of problems.")
@OUTPUT
@STORE
@click.option("--run-id", help="Name of the run; default the time.")
@click.option("--address", help="A Ray to drive from here; default one of our own.")
@ON_CLUSTER
@click.option(
    "--send-credentials",
    is_flag=True,
    default=None,
    help="Let the cluster have this environment's AWS_* credentials.",
)
@click.option("--num-cpus", type=float, help="CPUs for each problem; default 1.")
@click.option("--num-gpus", type=float, help="GPUs for each problem, 0.5 too; default 0.")
@click.option("--workers", type=int, help="Most problems at once.")
@click.option(
    "--wait-for-nodes",
    is_flag=True,
    default=None,
    help="What no node can hold waits for one that can: for clusters that grow.",
)
@click.option(
    "--retries",
    multiple=True,
    metavar="[CAUSE=]N",
    help="Most retries, for all or one of preempted, node_lost, worker_lost, out_of_memory, "
    "disk_full; repeatable.",
)
@MODE
@click.option(
    "--log-format", type=click.Choice(["text", "json"]), help="Of what stderr says; default text."
)
@click.option("--only-failed", is_flag=True, default=None, help="Only what has not passed before.")
@click.option("--no-resume", is_flag=True, help="Run what passed before again, too.")
@decomposer_options
@working_options
@click.option("--dry-run", is_flag=True, help="Print the plan with estimated memory.")
def submit(config: Path | None, as_json: bool, dry_run: bool, no_resume: bool, **flags: Any) -> int:
    """Take many problems apart on a Ray, verify them, and write a manifest."""
    from runner.batch import submit as batch

    settings = _settings(flags | ({"resume": False} if no_resume else {}), config)
    if settings.on_cluster is not None:
        from runner.batch.remote import sending

        sending.check(settings)
    submission = batch.prepare(settings, dry=dry_run)
    if dry_run:
        _show_plan(batch.preview(submission, settings, batch.to_stderr), as_json)
        return 0
    if settings.on_cluster is None:
        manifest = batch.submit(submission, settings, batch.to_stderr)
    else:
        ended = sending.submit(submission, settings, batch.to_stderr)
        if isinstance(ended, sending.Left):
            click.echo(ended, err=True)
            return INTERRUPTED
        manifest = ended
    from runner.batch import tables

    if settings.log_format == "text":
        tables.results(manifest, settings.output, _console(stderr=as_json), submission.run.shared)
    if as_json:
        click.echo(manifest.to_json(), nl=False)
    if manifest.state == "interrupted":
        return INTERRUPTED
    return 0 if manifest.all_passed else 1


class _FileOrTarget(click.Path):
    """A problem file, or `package.module:Class`, which stays text."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        from runner.problems import is_target

        return value if is_target(value) else super().convert(value, param, ctx)


@cli.command()
@click.argument(
    "file",
    metavar="FILE|MODULE:CLASS",
    type=_FileOrTarget(exists=True, dir_okay=False, path_type=Path),
)
@click.option("--init", help="Arguments of CLASS, as JSON: by name {...} or by position [...].")
@click.option("--inputs", help="Of its forward(): 'float32[8,3,224,224]'; or MODULE:FUNCTION.")
@OUTPUT
@MODE
@decomposer_options
@working_options
def decompose(
    file: Path | str,
    init: str | None,
    inputs: str | None,
    config: Path | None,
    as_json: bool,
    **flags: Any,
) -> int:
    """Take one problem apart and verify it, without Ray: a FILE, or a model in a package."""
    from runner.batch import alone, tables
    from runner.problems import problem_file

    settings = _settings(flags, config)
    done = alone.decompose(problem_file(file, init, inputs, settings.output), settings)
    tables.one(done.result, done.directory, done.log, _console(stderr=as_json))
    if as_json:
        click.echo(done.result.to_json(), nl=False)
    return 0 if done.result.status == "passed" else 1


@cli.command()
@click.argument(
    "directory",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@working_options
def verify(directory: tuple[Path, ...], config: Path | None, as_json: bool, **flags: Any) -> int:
    """Verify decomposition directories, whoever wrote them."""
    from runner.batch import alone, tables

    settings = _settings(flags, config)
    console = _console(stderr=as_json)
    verdicts = []
    for each in directory:
        verdicts.append(alone.verify(each, settings))
        tables.verdict(verdicts[-1], console)
    if as_json:
        click.echo(json.dumps([verdict.to_json() for verdict in verdicts], indent=1))
    return 0 if all(verdict.record.status == "passed" for verdict in verdicts) else 1


cli.add_command(prompt)


@cli.command()
@click.argument("run")
@click.argument("destination", metavar="[DEST]", required=False, type=click.Path(path_type=Path))
@STORE
@click.option("--level", type=int, multiple=True, help="1, 2 or 3; repeatable.")
@click.option("--problem", multiple=True, help="Glob on names; repeatable.")
@click.option("--config", type=click.Path(path_type=Path), help="A YAML file.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def pull(
    run: str, destination: Path | None, config: Path | None, as_json: bool, **flags: Any
) -> int:
    """Bring a RUN from its store to DEST (default: a directory of the run's name)."""
    from runner.batch import stored, tables

    console = _console(stderr=as_json)
    settings = _settings(flags, config)
    place = destination or Path(run)
    done = stored.bring(settings, run, place, lambda one: tables.pulled(one, place, console))
    if as_json:
        click.echo(tables.pulled_json(done))
    console.print(f"{sum(one.well for one in done)} of {len(done)} in {place}", soft_wrap=True)
    return 0 if all(one.well for one in done) else 1


@cli.command()
@click.argument("run", required=False)
@OUTPUT
@STORE
@ON_CLUSTER
@click.option("--config", type=click.Path(path_type=Path), help="A YAML file.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def status(run: str | None, config: Path | None, as_json: bool, **flags: Any) -> int:
    """List runs and how each stands, or show one RUN."""
    from runner.batch import stored, tables

    settings = _settings(flags, config)
    if settings.on_cluster is not None:
        return sent(settings, run, as_json)
    where, manifests = stored.runs(settings, run)
    if as_json:
        click.echo(tables.states_json(manifests))
    elif not manifests:
        click.echo(f"no runs in {where}")
    else:
        _console().print(tables.states(manifests))
        if run:
            shared = None if where == str(settings.output) else where
            tables.results(manifests[0], settings.output, _console(), shared)
    return 0


cli.add_command(logs)
cli.add_command(stop)


DECOMPOSITION = click.Path(exists=True, file_okay=False, path_type=Path)


@cli.command()
@click.argument("directory", type=DECOMPOSITION)
@click.option("--all", "everything", is_flag=True, help="Open every instance, not each workload.")
def show(directory: Path, everything: bool) -> int:
    """Print a decomposition's tree with its shapes."""
    from runner.report import show as showing
    from runner.tree.document import Tree

    tree = Tree.read(directory)
    console = _console()
    drawing = showing.draw(tree, everything=everything)
    console.print(drawing, no_wrap=True, overflow="ignore", crop=False)
    console.print(f"\n{showing.summary(tree)}", soft_wrap=True)
    return 0


@cli.command()
@click.argument("a", type=DECOMPOSITION)
@click.argument("b", type=DECOMPOSITION)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def diff(a: Path, b: Path, as_json: bool) -> int:
    """Tell how decompositions A and B differ; exit 0 where they do not, else 1."""
    from runner.report import diff as differing

    difference = differing.compare(a, b)
    if as_json:
        click.echo(json.dumps(difference.to_json(), indent=1))
    else:
        differing.show(difference, _console())
    return 0 if difference.same else 1


@cli.command()
@click.argument("what", metavar="RUN|DIR")
@OUTPUT
@STORE
@click.option(
    "--to", type=click.Path(dir_okay=False, path_type=Path), help="Default report.html in it."
)
@click.option("--open", "opened", is_flag=True, help="Show it in a browser.")
@click.option("--config", type=click.Path(path_type=Path), help="A YAML file.")
def report(what: str, to: Path | None, opened: bool, config: Path | None, **flags: Any) -> int:
    """Write a run, or a directory, as one web page that needs no network."""
    from runner.report import fetched, page

    with fetched.subject(what, _settings(flags, config)) as about:
        path = to or about.place / "report.html"
        page.write(about, path)
    for note in about.notes:
        click.echo(f"but mind: {note}", err=True)
    click.echo(path)
    if opened:
        click.launch(str(path))
    return 0


@cli.command()
@click.argument("what", metavar="RUN|DIR")
@OUTPUT
@STORE
@click.option("--by", type=click.Choice(["flops", "bytes"]), help="What is shared; default flops.")
@click.option("--operation", multiple=True, help="Only such kernels: conv2d; repeatable.")
@click.option("--first", type=click.IntRange(min=1), help="Only so many of the sorted workloads.")
@click.option("--families", is_flag=True, help="Show families: one operation, any size.")
@click.option("--measure", is_flag=True, help="Time them here, and sort by time.")
@click.option("--device", type=click.Choice(["cpu", "cuda"]), help="To measure on; default cpu.")
@click.option("--memory", help="For measuring, as 16GiB; default 85% of what is free.")
@click.option("--parquet", type=click.Path(dir_okay=False, path_type=Path), help="Write this file.")
@click.option(
    "--export",
    "exported",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write them for KernelBench, SOL-ExecBench and FlashInfer-Bench.",
)
@click.option("--config", type=click.Path(path_type=Path), help="A YAML file.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def workloads(
    what: str,
    by: Any,
    operation: tuple[str, ...],
    first: int | None,
    families: bool,
    measure: bool,
    parquet: Path | None,
    exported: Path | None,
    config: Path | None,
    as_json: bool,
    **flags: Any,
) -> int:
    """The unique kernels over all models of a run, or of a directory, and where they are used."""
    from runner.report import catalogue as catalogues
    from runner.report import fetched, listing

    settings = _settings(flags, config)
    with fetched.subject(what, settings) as about:
        catalogue = catalogues.sort(catalogues.collect(about), by or "flops")
        if measure:
            catalogue = _measured(catalogue, about, settings, operation, first)
        chosen = catalogues.choose(catalogue, operation, first)
        if exported is not None:
            from runner.report.export import export

            for note in export(chosen, about, exported, settings.memory):
                click.echo(f"but mind: {note}", err=True)
            click.echo(f"{exported}: {len(chosen)} workloads", err=True)
    if parquet is not None:
        from runner.report import parquet as parquets

        parquets.write(chosen, parquet)
        click.echo(f"{parquet}: {len(chosen)} workloads", err=True)
    if as_json:
        click.echo(catalogue.model_copy(update={"workloads": chosen}).to_json(), nl=False)
    elif families:
        listing.show_families(catalogue, first or LISTED, _console())
    else:
        listing.show(catalogue, chosen, first or LISTED, _console())
    return 0


def _measured(
    catalogue: Any, about: Any, settings: Any, operation: tuple[str, ...], first: int | None
) -> Any:
    from rich.progress import Progress

    from runner.report import catalogue as catalogues
    from runner.report.measure import measure

    chosen = catalogues.choose(catalogue, operation, first)
    with Progress(console=_console(stderr=True), transient=True) as progress:
        task = progress.add_task("measuring", total=len(chosen))
        return measure(
            catalogue,
            about,
            chosen,
            device="cuda" if settings.device == "cuda" else "cpu",
            memory_bytes=settings.memory,
            on_done=lambda row: progress.advance(task),
        )


@cli.command()
@OUTPUT
@STORE
@click.option("--data", type=click.Path(path_type=Path), help="Directory of problems.")
@click.option("--num-gpus", type=float, help="GPUs that must be here; default 0.")
@click.option("--device", type=click.Choice(["cpu", "cuda", "auto"]))
@click.option("--config", type=click.Path(path_type=Path), help="A YAML file.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def doctor(config: Path | None, as_json: bool, **flags: Any) -> int:
    """Look at what a run needs here: exit 0 where it can begin, else 1."""
    from runner.batch.doctor import examine

    console = _console(stderr=as_json)
    findings = []
    for finding in examine(_settings(flags, config)):
        mark = "ok " if finding.well else "NOT"
        console.print(f"{mark}  {finding.what:8} {finding.said}", soft_wrap=True)
        findings.append(finding)
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], indent=1))
    return 0 if all(finding.well for finding in findings) else 1


@cli.group()
def k8s() -> None:
    """Write manifests for a run on Kubernetes."""


@k8s.command()
@click.option("--level", type=int, multiple=True, help="1, 2 or 3; repeatable.")
@click.option("--problem", multiple=True, help="Glob on names; repeatable.")
@click.option("--data", type=click.Path(path_type=Path), help="Directory of problems in the image.")
@STORE
@click.option("--run-id", help="Name of the run; default kdrun.")
@click.option("--num-gpus", type=float, help="GPUs for each problem, in the overlay gpu.")
@MODE
@click.option("--trials", type=int, help="Seeds for each comparison; default 2.")
@click.option("--timeout", type=float, help="Seconds for one problem; default 1800.")
@click.option("--memory", help="For the problems of one pod; default 16GiB.")
@click.option("--image", help="Of kdrun; default kdrun:VERSION.")
@click.option("--gpu-image", help="Of GPU workers; default kdrun:VERSION-cuda.")
@click.option("--nodes", type=click.IntRange(min=1), help="Worker pods; default 2.")
@click.option("--cores", type=click.IntRange(min=1), help="Of each; default 4.")
@click.option(
    "--to", type=click.Path(file_okay=False, path_type=Path), default=Path("k8s"), show_default=True
)
@click.option("--config", type=click.Path(path_type=Path), help="A YAML file.")
def render(
    image: str | None,
    gpu_image: str | None,
    nodes: int | None,
    cores: int | None,
    to: Path,
    config: Path | None,
    **flags: Any,
) -> int:
    """Write a kustomize base (a RayJob) and its overlays: local (a plain Job), gpu."""
    from runner.batch import kubernetes

    said = {"image": image, "gpu_image": gpu_image, "nodes": nodes, "cores": cores}
    pods = kubernetes.Pods(**{name: value for name, value in said.items() if value})  # type: ignore[arg-type]
    for path in kubernetes.write(_settings(flags, config), pods, to):
        click.echo(path)
    return 0


@cli.group()
def data() -> None:
    """List problems; fetch and check the KernelBench dataset."""


@data.command("list")
@click.option("--level", type=int, multiple=True, help="1, 2 or 3; repeatable.")
@click.option("--data", type=click.Path(path_type=Path), help="Directory of problems.")
@click.option("--config", type=click.Path(path_type=Path), help="A YAML file.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def data_list(config: Path | None, as_json: bool, **flags: Any) -> int:
    """What there is, per level, with a one-line idea of each."""
    from runner.batch import tables
    from runner.problems import data_root, idea, select

    settings = _settings(flags, config)
    root = data_root(settings.data)
    listed = [(problem, idea(problem)) for problem in select(root, settings.level)]
    if as_json:
        click.echo(tables.problems_json(listed))
    else:
        click.echo(root, err=True)
        tables.problems(listed, _console())
    return 0


@data.command()
@click.option("--from", "source", help="A checkout, a git directory or an archive of KernelBench.")
@click.option("--to", "destination", type=click.Path(path_type=Path), help="Default here.")
def fetch(source: str | None, destination: Path | None) -> int:
    """Put KernelBench's 250 problems at the pinned commit, and our gpt_oss, in place."""
    from runner.problems import KERNELBENCH
    from runner.problems import fetch as fetch_dataset

    report = fetch_dataset(source, destination or KERNELBENCH)
    click.echo(f"{report.destination}: {report.written} written, {report.kept} there already")
    for what, names in (("missing", report.missing), ("changed", report.changed)):
        for name in names:
            click.echo(f"{what} in {report.source}: {name}")
    return 0 if report.complete else 1


@data.command()
@click.argument("directory", required=False, type=click.Path(path_type=Path))
def check(directory: Path | None) -> int:
    """Compare the dataset in DIRECTORY with the manifest, file by file."""
    from runner.problems import KERNELBENCH
    from runner.problems import check as check_dataset

    report = check_dataset(directory or KERNELBENCH)
    differences = (
        ("missing", report.missing),
        ("changed", report.changed),
        ("extra", report.extra),
    )
    for what, names in differences:
        for name in names:
            click.echo(f"{what}: {name}")
    counts = ", ".join(f"{len(names)} {what}" for what, names in differences)
    click.echo(f"{report.root}: {report.right} right, {counts}")
    return 0 if report.ok else 1


def _settings(flags: dict[str, Any], config: Path | None) -> Any:
    from runner.config import load

    return load({k: v for k, v in flags.items() if v is not None and v != ()}, config)


def _show_plan(previews: Any, as_json: bool) -> None:
    from runner.batch import tables

    if as_json:
        click.echo(tables.plan_json(previews))
    else:
        _console().print(tables.planned(previews))


def _console(*, stderr: bool = False) -> Any:
    from rich.console import Console

    # Names may hold [brackets]. A pipe has no width: nothing is wrapped for it.
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 200
    return Console(stderr=stderr, highlight=False, markup=False, width=width)


def _fail(message: str) -> None:
    click.echo(f"kdrun: {message}", err=True)
