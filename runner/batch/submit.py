"""This file knows about a whole `kdrun submit`: select, plan, connect, drive."""

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from runner import __version__
from runner.batch.attempt import estimate
from runner.batch.child.child_process import close_fork_server
from runner.batch.child.device import look_for_device
from runner.batch.child.task import Record
from runner.batch.cluster import connect, is_client, no_cluster, usable_bytes
from runner.batch.cluster_versions import refuse_other_versions
from runner.batch.decomposer import decomposer_process
from runner.batch.driver import Driver
from runner.batch.event_log import EventLog, open_log
from runner.batch.interrupts import interruptible_start, listen_for_signals
from runner.batch.machine import cores
from runner.batch.memory_request import MemoryRequest
from runner.batch.metrics import Metrics
from runner.batch.plan import PlanItem, label, plan
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
from runner.problems import Problem, data_root, origin, problem_files, select
from runner.store.directory import DirectoryStore
from runner.store.manifest import Manifest
from runner.store.result import RunOptions
from runner.store.runs import RunStore

MessagePrinter = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Submission:
    """What is to be done, before anything is started."""

    run: Run
    items: Sequence[PlanItem]
    origin: str
    """Where the problems came from, in words."""

    @property
    def pending_items(self) -> list[PlanItem]:
        """Items that no earlier result stands for."""
        return [item for item in self.items if item.earlier_result is None]

    def __str__(self) -> str:
        passed_count = len(self.items) - len(self.pending_items)
        passed_text = f", {passed_count} passed before" if passed_count else ""
        return f"{self.origin}: {len(self.items)} selected{passed_text}, {len(self.pending_items)} to run"


@dataclass(frozen=True, slots=True)
class Preview:
    """One problem of a plan, and what capturing it has shown."""

    item: PlanItem
    note: str = ""
    peak_bytes: int | None = None
    """What its process is expected to take; None where nothing is run, or it is broken."""
    memory_bytes: int | None = None
    """What Ray will be asked for; present exactly when there is an estimate."""


def prepare(settings: Settings, *, is_dry_run: bool = False) -> Submission:
    """Select the problems, and plan what to do about each; a dry one leaves no trace in a store.

    Raises:
        UsageError: nothing, or nothing that can be meant, is selected.
        StoreError: results cannot be stored where they are to be.
        MissingPackageError: Ray, which all but a dry run needs, is not installed.
    """
    if not is_dry_run:
        require_package("ray", "cluster", "kdrun submit")
    root = data_root(settings.data)
    patterns = problem_files(settings.problem, settings.output)
    problems = select(root, settings.level, patterns, settings.start, settings.count)
    return plan_submission(
        settings,
        problems,
        origin=origin(root, problems),
        data=str(root.path),
        is_dry_run=is_dry_run,
    )


def plan_submission(
    settings: Settings,
    problems: Sequence[Problem],
    *,
    origin: str,
    data: str,
    is_dry_run: bool = False,
) -> Submission:
    """What to do about problems that are selected.

    Raises:
        UsageError: it cannot be meant.
        StoreError: results cannot be stored where they are to be.
    """
    store = DirectoryStore(settings.output)
    options = run_options(settings)
    shared_store = open_store(settings) if is_dry_run else claim_store(settings)
    run_id = settings.run_id or _choose_run_id(store, shared_store, settings)
    selection = {"resume": settings.resume, "only_failed": settings.only_failed}
    if shared_store is None:
        earlier_results = {label(p): result for p in problems if (result := store.result(label(p)))}
        items = plan(problems, earlier_results, store.damage, options, __version__, **selection)
    else:
        shared_store.find_manifest(run_id)  # one that cannot be read is told now
        items = plan_with_store(shared_store, run_id, store, problems, options, **selection)
    run = Run(
        run_id=run_id,
        store=store,
        options=options,
        data=data,
        arguments=settings.model_dump(mode="json"),
        settings=settings,
        shared_store=shared_store,
        is_remote=settings.address is not None,
        work_directory=_work_directory(settings, run_id),
    )
    return Submission(run, items, origin)


def _work_directory(settings: Settings, run_id: str) -> Path | None:
    """Where a cluster that is driven from outside builds results: it may not have our folders.

    Raises:
        UsageError: nobody but that cluster would ever see them.
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
    """The settings that decide what a verdict means.

    Raises:
        UsageError: the decomposer that they name is not here.
    """
    return RunOptions(
        mode=settings.mode,
        trials=settings.trials,
        device=settings.device,
        power=settings.power,
        decomposer=decomposer_process.select_decomposer(settings),
    )


def submit(submission: Submission, settings: Settings, say: MessagePrinter) -> Manifest:
    """Run it over a Ray, and return its manifest, which is written too.

    Raises:
        UsageError: another process drives this run.
        ClusterError: no Ray, or not the one that was asked for.
        StoreError: results cannot be written.
    """
    return drive(send_local_results(submission, say), settings, say)


def send_local_results(submission: Submission, say: MessagePrinter) -> Submission:
    """Say what is to be done, and let the store have what only the output directory had."""
    run, items = submission.run, submission.items
    say(str(submission))
    if run.shared_store is None:
        return submission
    say(f"run {run.run_id} in {run.shared_store}")
    if local_count := sum(item.is_only_local for item in items):
        say(f"sending {local_count} that passed here before")
    return replace(submission, items=send_results(run.shared_store, run.run_id, run.store, items))


def drive(submission: Submission, settings: Settings, say: MessagePrinter) -> Manifest:
    """Run what is left to run over a Ray.

    Raises:
        UsageError: another process drives this run, or this machine lacks the device.
        ClusterError: no Ray, or not the one that was asked for.
        StoreError: results cannot be written.
        KeyboardInterrupt: it was stopped before there was anything to stop.
    """
    run, items = submission.run, submission.items
    folder = run.store.run_directory(run.run_id)
    with ExitStack() as stack:
        if submission.pending_items:
            if settings.address is None and settings.device not in ("cpu", "auto"):
                look_for_device(settings.device)
                close_fork_server()  # the local Ray's workers have children of their own
            stack.enter_context(hold_run_lock(folder, run.run_id))
        watchers: list[Watcher] = [EventLog(stack.enter_context(open_log(folder)), run.run_id)]
        cluster = no_cluster()
        if submission.pending_items:
            with interruptible_start():
                cluster = stack.enter_context(connect(settings))
            if not is_client(settings.address):  # whose nodes get ours, and which counts nothing
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


def preview(submission: Submission, settings: Settings, say: MessagePrinter) -> list[Preview]:
    """What a run would do, with the memory that each problem would ask this machine for."""
    say(str(submission))
    max_bytes = usable_bytes(settings.memory)
    return [_preview(submission.run, item, max_bytes) for item in submission.items]


def _preview(run: Run, item: PlanItem, max_bytes: int) -> Preview:
    if item.earlier_result is not None:
        return Preview(item)
    memory = MemoryRequest.for_capture(max_bytes)
    attempt = None
    while attempt is None or (attempt.record.out_of_memory and memory.can_grow):
        if attempt is not None:
            memory = memory.with_max_memory()
        task = run.build_task(item, memory.granted_bytes, max_bytes, cores())
        # A dry run leaves nothing behind, in the output directory either.
        with _temporary_directory() as scratch:
            task_aside = task.model_copy(update={"scratch": scratch / "scratch"})
            attempt = estimate(task_aside, scratch / "log")
    record: Record = attempt.record
    if record.forecast is None:
        return Preview(item, f"{record.status}: {record.reason}")
    expected_bytes, weights_bytes = record.forecast.expected_bytes, record.forecast.weights_bytes
    memory = memory.for_model(expected_bytes, attempt.peak_memory_bytes or 0, weights_bytes)
    is_streamed = memory.fits and expected_bytes > max_bytes
    note = (
        "weights are streamed" if is_streamed else "" if memory.fits else "too large to verify here"
    )
    return Preview(item, note, expected_bytes, memory.granted_bytes)


@contextmanager
def _temporary_directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="kdrun-") as directory:
        yield Path(directory)


def _choose_run_id(store: DirectoryStore, shared_store: RunStore | None, settings: Settings) -> str:
    """That of the same run which was stopped before its end, or a new one."""
    if shared_store is not None and settings.resume:
        unfinished_run = find_unfinished_run(shared_store, settings.model_dump(mode="json"))
        if unfinished_run is not None:
            return unfinished_run.run_id
    return _new_run_id(store)


def _new_run_id(store: DirectoryStore) -> str:
    """The time, readable and in order; a second run in one second waits its turn."""
    name = timestamp = f"{datetime.now(UTC):%Y%m%d-%H%M%S}"
    number = 1
    while store.run_directory(name).exists():
        number += 1
        name = f"{timestamp}-{number}"
    return name


def print_to_stderr(text: str) -> None:
    """How `say` speaks on the command line."""
    print(text, file=sys.stderr, flush=True)
