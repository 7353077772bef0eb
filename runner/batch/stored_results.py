"""Opens the run store, plans against its results, and uploads or downloads results."""

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from runner.batch.plan import PlanItem, plan
from runner.config import Settings
from runner.errors import StoreError, UsageError
from runner.problems import Problem, find_labels
from runner.store.directory import DirectoryStore
from runner.store.manifest import Manifest
from runner.store.objects import Address, map_concurrently
from runner.store.pull import PullOutcome, pull
from runner.store.result import ProblemResult, RunOptions
from runner.store.runs import CommittedResult, RunStore

MAX_CONCURRENT = 4
"""Problems checked or uploaded concurrently, each with as many files as a store allows."""
MAX_RECENT_RUNS = 20
"""Number of latest runs among which an unfinished one is looked for."""


def open_store(settings: Settings, *, patient: bool = True) -> RunStore | None:
    """Return the store that the settings name, or None.

    Requests of a store that is not `patient` fail after short time limits and few retries.
    """
    if settings.store is None:
        return None
    address = Address(
        uri=settings.store,
        endpoint_url=settings.s3_endpoint_url,
        addressing=settings.s3_addressing,
        checksums=settings.s3_checksums,
    )
    return RunStore(address, patient=patient)


def claim_store(settings: Settings) -> RunStore | None:
    """Return the store that the settings name, after checking that results can be written there.

    Raises:
        StoreError: results cannot be written there.
    """
    impatient = open_store(settings, patient=False)
    if impatient is not None:
        impatient.claim()
    return open_store(settings)


def open_readable_store(settings: Settings) -> RunStore:
    """Return the store that the settings name, after checking that it can be read.

    Raises:
        UsageError: the settings name no store.
        StoreError: there is no store, or it cannot be read.
    """
    impatient, store = open_store(settings, patient=False), open_store(settings)
    if impatient is None or store is None:
        raise UsageError("no store is named", hint="--store s3://bucket/prefix, or KDRUN_STORE")
    impatient.check_layout()
    return store


def find_unfinished_run(store: RunStore, arguments: Mapping[str, Any]) -> Manifest | None:
    """Return the latest run if it had the same arguments and was stopped early, else None."""
    recent_manifests = map_concurrently(store.find_manifest, store.run_ids()[-MAX_RECENT_RUNS:])
    manifests = [manifest for manifest in recent_manifests if manifest is not None]
    last_manifest = max(manifests, key=lambda manifest: manifest.started, default=None)
    if last_manifest is None or last_manifest.state_now() not in ("interrupted", "killed"):
        return None
    return last_manifest if last_manifest.arguments == dict(arguments) else None


def plan_with_store(
    store: RunStore,
    run_id: str,
    output: DirectoryStore,
    problems: Sequence[Problem],
    options: RunOptions,
    *,
    resume: bool,
    only_failed: bool,
) -> list[PlanItem]:
    """Return the plan for each problem, given the results in a store and in the output directory.

    A result that passed, and is only in the output directory, is planned to be uploaded.
    """
    stored_results = store.find_results(run_id, [problem.label for problem in problems])
    damages = _find_damages(store, run_id, stored_results.values())
    items = plan(
        problems,
        {name: stored_result.result for name, stored_result in stored_results.items()},
        lambda name, _: damages.get(name),
        options,
        resume=resume,
        only_failed=only_failed,
    )
    items = [replace(item, stored_result=stored_results.get(item.label)) for item in items]
    if only_failed or not resume:
        return items
    return [_use_local_result(item, output, options) for item in items]


def send_results(
    store: RunStore, run_id: str, output: DirectoryStore, items: Sequence[PlanItem]
) -> list[PlanItem]:
    """Upload the results that only the output directory has, and return the updated items."""

    def send_item(item: PlanItem) -> PlanItem:
        if not item.is_only_local or item.earlier_result is None:
            return item
        version = item.stored_result.version if item.stored_result else None
        directory = output.directory(item.label)
        published = store.publish(run_id, item.earlier_result, directory, version)
        standing = published.committed
        return replace(
            item, earlier_result=standing.result, stored_result=standing, differs=published.differs
        )

    return map_concurrently(send_item, items, MAX_CONCURRENT)


def read_manifests(
    settings: Settings, run_id: str | None
) -> tuple[str, list[Manifest], dict[str, str]]:
    """Return the place of runs, and the manifest of one run or of all.

    The place is the store that the settings name, or else the output directory. The last element
    maps the ids of other runs to the reason why their manifests cannot be read.

    Raises:
        StoreError: no such store, no such run, or the manifest of `run_id` cannot be read.
    """
    store: DirectoryStore | RunStore
    if settings.store is None:
        store, place = DirectoryStore(settings.output), str(settings.output)
        read: Callable[[str], Manifest | None] = store.manifest
    else:
        store = open_readable_store(settings)
        read, place = store.find_manifest, str(store)
    if run_id is not None:
        return place, [store.manifest(run_id)], {}
    unreadable: dict[str, str] = {}

    def read_or_note(name: str) -> Manifest | None:
        try:
            return read(name)
        except StoreError as error:
            unreadable[name] = str(error)
            return None

    manifests = [m for m in map_concurrently(read_or_note, store.run_ids()) if m is not None]
    if settings.store is not None:  # An output directory lists its runs by time.
        manifests.sort(key=lambda manifest: manifest.started)
    return place, manifests, unreadable


def status_command(settings: Settings, run_id: str) -> str:
    """Return the `kdrun status` command that shows a run with these settings."""
    flags: list[str] = []
    if settings.store is not None:
        flags = ["--store", settings.store]
    elif settings.output != Settings.model_fields["output"].default:
        flags = ["--output", str(settings.output)]
    return shlex.join(["kdrun", "status", run_id, *flags])


def pull_results(
    settings: Settings, run_id: str, destination: Path, report: Callable[[PullOutcome], None]
) -> list[PullOutcome]:
    """Download the results of a run's problems that the settings select.

    Raises:
        UsageError: the settings select nothing.
        StoreError: no such store, no such run, or no space here.
    """
    store = open_readable_store(settings)
    manifest = store.manifest(run_id)
    levels = {f"level{n}" for n in settings.level}

    def is_selected(label: str) -> bool:
        is_named = not settings.problem or any(find_labels([label], p) for p in settings.problem)
        return is_named and (not levels or PurePosixPath(label).parent.name in levels)

    pulled = pull(store, manifest, destination, is_selected, report)
    if not pulled and manifest.rows:
        raise UsageError(
            f"none of the run's {len(manifest.rows)} problems is selected, or has a result",
            hint=f"`{status_command(settings, run_id)}` lists them",
        )
    return pulled


def _use_local_result(item: PlanItem, output: DirectoryStore, options: RunOptions) -> PlanItem:
    local_result: ProblemResult | None = output.result(item.label)
    if item.earlier_result is not None or local_result is None:
        return item
    earlier_results = {item.label: local_result}
    (local_item,) = plan([item.problem], earlier_results, output.damage, options)
    if local_item.earlier_result is None:
        return item
    return replace(
        item,
        earlier_result=local_item.earlier_result,
        reason=f"{local_item.reason}, not stored yet",
    )


def _find_damages(
    store: RunStore, run_id: str, stored_results: Iterable[CommittedResult]
) -> dict[str, str | None]:
    results = [stored.result for stored in stored_results]
    reusable = [result for result in results if result.status in ("passed", "written")]
    damages = map_concurrently(
        lambda result: store.damage(run_id, result), reusable, MAX_CONCURRENT
    )
    return dict(zip((result.label for result in reusable), damages, strict=True))
