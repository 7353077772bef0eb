"""Runs a whole `kdrun submit`: selects problems, plans, connects to Ray, drives the run."""

import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from runner.batch.attempt import run_without_commit
from runner.batch.batch_fit import MemoryLimit, fit_choice
from runner.batch.child.answer import Answer, EstimateAnswer, FailureCause, failure_cause
from runner.batch.child.child_process import close_fork_server
from runner.batch.child.device import look_for_device
from runner.batch.child.task import Task
from runner.batch.cluster import connect, is_client, no_cluster, usable_bytes
from runner.batch.cluster_versions import refuse_other_versions
from runner.batch.decomposer import decomposer_process
from runner.batch.driver import Driver
from runner.batch.event_log import EventLog, open_log
from runner.batch.interrupts import interruptible_start, listen_for_signals
from runner.batch.machine import cores
from runner.batch.memory_request import MemoryRequest
from runner.batch.metrics import Metrics
from runner.batch.plan import PlanItem, plan
from runner.batch.progress import watch_run
from runner.batch.run import Run, Watcher, WatcherGroup
from runner.batch.run_lock import hold_run_lock
from runner.batch.stored_results import (
    claim_store,
    find_unfinished_run,
    open_store,
    plan_with_store,
    send_results,
)
from runner.config import Settings
from runner.errors import UsageError, require_package
from runner.problems import Problem, data_root, identify_problem, select_problems
from runner.problems.package_model import write_target_problems
from runner.problems.selection import DataRoot, describe_origin
from runner.problems.variants import VariantChoice, choose_variants, write_choice
from runner.quantities import join_first, pluralize, size
from runner.store.directory import DirectoryStore
from runner.store.manifest import Manifest
from runner.store.result import RunOptions
from runner.store.runs import RunStore
from runner.zoo import write_zoo_problems

MessagePrinter = Callable[[str], None]
MAX_IGNORED_NAMES = 3
"""Number of files or results that a remark names; the others are counted."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A planned run that has not started."""

    run: Run
    items: Sequence[PlanItem]
    origin: str
    """Origin of the problems, for people."""

    @property
    def pending_items(self) -> list[PlanItem]:
        """Items of the problems to run: they have no valid earlier result."""
        return [item for item in self.items if item.earlier_result is None]

    def __str__(self) -> str:
        earlier = Counter(
            item.earlier_result.status for item in self.items if item.earlier_result is not None
        )
        earlier_text = "".join(f", {count} {status} before" for status, count in earlier.items())
        return (
            f"{self.origin}: {len(self.items)} selected{earlier_text}, "
            f"{len(self.pending_items)} to run"
        )


@dataclass(frozen=True, slots=True)
class Preview:
    """One planned problem, and its memory needs as captured in a dry run."""

    item: PlanItem
    note: str = ""
    peak_bytes: int | None = None
    """Bytes that its process is expected to need; None if it is not run, or cannot be captured."""
    memory_bytes: int | None = None
    """Bytes that Ray will be asked for; present exactly when `peak_bytes` is."""


def prepare(settings: Settings, say: MessagePrinter, *, is_dry_run: bool = False) -> Submission:
    """Select the problems, write their variants and plan the run.

    A dry run writes nothing to a store.

    Raises:
        UsageError: the settings select no problem, or contradict each other.
        StoreError: results cannot be stored in the requested place.
        MissingPackageError: Ray, which all but a dry run needs, is not installed.
    """
    if not is_dry_run:
        require_package("ray", "cluster", "kdrun submit")
    root = data_root(settings.data)
    if ignored := root.ignored_files():
        files = join_first([file.name for file in ignored], MAX_IGNORED_NAMES)
        say(f"but mind: {root.path} has level folders, so these beside them are left out: {files}")
    selected = _select_problems(root, settings)
    choices = choose_variants(selected, settings.set, settings.dtype)
    if settings.fit is None:
        written = [write_choice(choice, settings.output) for choice in choices]
    else:
        written = _fit_choices(choices, settings, say)
    problems = list({problem.path: problem for problem in written}.values())
    store = DirectoryStore(settings.output)
    options = run_options(settings)
    shared_store = open_store(settings) if is_dry_run else claim_store(settings)
    run_id = settings.run_id or _choose_run_id(store, shared_store, settings)
    selection = {"resume": settings.resume, "only_failed": settings.only_failed}
    if shared_store is None:
        earlier_results = {p.label: result for p in problems if (result := store.result(p.label))}
        items = plan(problems, earlier_results, store.damage, options, **selection)
        sources = {item.label: item.problem.sha256 for item in items}
        replaced = [n for n, r in earlier_results.items() if r.is_pass_of_another(sources.get(n))]
        if replaced:
            names = join_first(replaced, MAX_IGNORED_NAMES)
            say(f"but mind: passes of files with other contents are replaced: {names}")
    else:
        shared_store.find_manifest(run_id)  # Fail now if the run's manifest cannot be read.
        items = plan_with_store(shared_store, run_id, store, problems, options, **selection)
    run = Run(
        run_id=run_id,
        store=store,
        options=options,
        data=str(root.path),
        settings=settings,
        shared_store=shared_store,
        work_directory=_work_directory(settings, run_id),
    )
    origin = " and ".join(settings.zoo) if settings.zoo else describe_origin(root, selected)
    return Submission(run, items, origin)


def _select_problems(root: DataRoot, settings: Settings) -> list[Problem]:
    """Return the problems that the settings name; files of targets and zoo models are written."""
    if settings.zoo:
        for setting in ("level", "data"):
            if getattr(settings, setting):
                raise UsageError(f"--{setting}: models of --zoo have none", hint="leave it out")
        files = write_zoo_problems(
            settings.zoo, settings.problem, settings.output, settings.start, settings.count
        )
        return [identify_problem(file) for file in files]
    patterns = write_target_problems(settings.problem, settings.output)
    return select_problems(root, settings.level, patterns, settings.start, settings.count)


def _fit_choices(
    choices: Sequence[VariantChoice], settings: Settings, say: MessagePrinter
) -> list[Problem]:
    """Return the problems with batches that fit into the memory that the settings name."""
    assert settings.fit is not None
    text = size(settings.fit).replace(" ", "").replace(".0", "")
    limit = MemoryLimit(settings.fit, text, settings.output)

    def forecast(problem: Problem) -> Answer:
        return run_locally("estimate", problem.path, problem.label, settings)

    say(f"looking for batches of {pluralize(len(choices), 'problem')} that fit into {text}")
    problems = []
    for choice in choices:
        problem, note = fit_choice(choice, limit, forecast)
        problems.append(problem)
        if note is not None:
            say(note)
    return problems


def _work_directory(settings: Settings, run_id: str) -> Path | None:
    """Return the directory where a cluster driven by Ray's client builds results, else None.

    Such a cluster may not have our folders.

    Raises:
        UsageError: the settings name no store, so the results would stay on the cluster.
    """
    if not is_client(settings.address):
        return None
    if settings.store is None:
        raise UsageError(
            f"--address {settings.address}: results must go where both sides reach them",
            hint="--store s3://bucket/prefix",
        )
    return Path("/tmp") / f"kdrun-{run_id}"


def run_options(settings: Settings) -> RunOptions:
    """Return the settings on which verdicts depend.

    Raises:
        UsageError: the decomposer that the settings name is missing on this machine.
    """
    return RunOptions(
        mode=settings.mode,
        trials=settings.trials,
        device=settings.device,
        power=settings.power,
        verify=settings.verify,
        unverified=settings.unverified,
        decomposer=decomposer_process.select_decomposer(settings),
    )


def local_task(
    problem: Path,
    name: str,
    directory: Path,
    scratch: Path,
    settings: Settings,
    mode: str | None = None,
) -> Task:
    """Return a task for a child of this process, which gets all free memory and all cores."""
    memory_bytes = usable_bytes(settings.memory)
    options = run_options(settings)
    return Task(
        problem=problem.absolute(),
        label=name,
        directory=directory.absolute(),
        scratch=scratch.absolute(),
        options=options.model_copy(update={"mode": mode}) if mode else options,
        memory_bytes=memory_bytes,
        most_memory_bytes=memory_bytes,
        threads=cores(),
        timeout_s=settings.timeout,
    )


def run_locally(
    kind: Literal["estimate", "facts", "verify"],
    problem: Path,
    name: str,
    settings: Settings,
    *,
    directory: Path | None = None,
    mode: str | None = None,
) -> Answer:
    """Run a function of `problem_work` that writes no decomposition, and return its answer.

    `directory` is the decomposition that it reads, if any.
    """
    with tempfile.TemporaryDirectory(prefix="kdrun-") as folder:
        read_directory, scratch = directory or Path(folder, "directory"), Path(folder, "scratch")
        task = local_task(problem, name, read_directory, scratch, settings, mode)
        return run_without_commit(kind, task, Path(folder, "log")).answer


def submit(submission: Submission, say: MessagePrinter) -> Manifest:
    """Upload earlier local results, drive the run over Ray, and return its written manifest.

    Raises:
        UsageError: another process drives this run, or this machine lacks the device.
        ClusterError: no Ray, or one without the requested resources.
        StoreError: results cannot be written.
        KeyboardInterrupt: a signal came before the driver had started.
    """
    submission = _send_local_results(submission, say)
    run, items, settings = submission.run, submission.items, submission.run.settings
    folder = run.store.run_directory(run.run_id)
    with ExitStack() as stack:
        if submission.pending_items:
            if settings.address is None and settings.device not in ("cpu", "auto"):
                look_for_device(settings.device)
                close_fork_server()  # The workers of a local Ray start their own.
            stack.enter_context(hold_run_lock(folder, run.run_id))
        watchers: list[Watcher] = [EventLog(stack.enter_context(open_log(folder)), run.run_id)]
        cluster = no_cluster()
        if submission.pending_items:
            with interruptible_start():
                cluster = stack.enter_context(connect(settings))
            # A Ray Client session installs our code on its nodes and exports no metrics.
            if not is_client(settings.address):
                if settings.address is not None:
                    refuse_other_versions()
                watchers.append(Metrics(run.run_id))
            say(str(cluster))
        if settings.log_format == "text":
            watchers.append(stack.enter_context(watch_run(len(items))))
        else:
            watchers.append(EventLog(sys.stderr, run.run_id))
        stop = stack.enter_context(listen_for_signals())
        return Driver(run, items, cluster, WatcherGroup(watchers), stop).drive()


def _send_local_results(submission: Submission, say: MessagePrinter) -> Submission:
    """Print the plan, upload results that only the output directory has, return the new plan."""
    run, items = submission.run, submission.items
    say(str(submission))
    if run.shared_store is None:
        return submission
    say(f"run {run.run_id} in {run.shared_store}")
    if local_count := sum(item.is_only_local for item in items):
        say(f"sending {local_count} that passed here before")
    return replace(submission, items=send_results(run.shared_store, run.run_id, run.store, items))


def preview(submission: Submission, say: MessagePrinter) -> list[Preview]:
    """Capture each pending problem on this machine and return the plan with memory needs."""
    say(str(submission))
    max_bytes = usable_bytes(submission.run.settings.memory)
    return [_preview(submission.run, item, max_bytes) for item in submission.items]


def _preview(run: Run, item: PlanItem, max_bytes: int) -> Preview:
    if item.earlier_result is not None:
        return Preview(item)
    memory = MemoryRequest.for_capture(max_bytes, max_bytes // cores())
    while True:
        task = run.build_task(item, memory.granted_bytes, max_bytes, cores())
        # A dry run writes nothing, not even to the output directory.
        with tempfile.TemporaryDirectory(prefix="kdrun-") as folder:
            task_aside = task.model_copy(update={"scratch": Path(folder, "scratch")})
            attempt = run_without_commit("estimate", task_aside, Path(folder, "log"))
        answer = attempt.answer
        if failure_cause(answer) is not FailureCause.OUT_OF_MEMORY or not memory.can_grow:
            break
        memory = replace(memory, granted_bytes=max_bytes)
    if not isinstance(answer, EstimateAnswer):
        return Preview(item, f"{answer.status}: {answer.reason}")
    expected_bytes, weights_bytes = answer.forecast.expected_bytes, answer.forecast.weights_bytes
    memory = memory.for_model(expected_bytes, attempt.peak_memory_bytes or 0, weights_bytes)
    is_streamed = memory.fits and expected_bytes > max_bytes
    note = (
        "weights are streamed" if is_streamed else "" if memory.fits else "too large to verify here"
    )
    return Preview(item, note, expected_bytes, memory.granted_bytes)


def _choose_run_id(store: DirectoryStore, shared_store: RunStore | None, settings: Settings) -> str:
    """Return the id of an unfinished run with the same arguments, or a new id."""
    if shared_store is not None and settings.resume:
        unfinished_run = find_unfinished_run(shared_store, settings.model_dump(mode="json"))
        if unfinished_run is not None:
            return unfinished_run.run_id
    return _new_run_id(store)


def _new_run_id(store: DirectoryStore) -> str:
    """Return the time as an id, with a number if a run of the same second exists."""
    name = timestamp = f"{datetime.now(UTC):%Y%m%d-%H%M%S}"
    number = 1
    while store.run_directory(name).exists():
        number += 1
        name = f"{timestamp}-{number}"
    return name


def print_to_stderr(text: str) -> None:
    """Print a message to stderr."""
    print(text, file=sys.stderr, flush=True)
