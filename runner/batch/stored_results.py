"""This file knows about runs and stores: what stands there, what is only here, what is wanted."""

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from runner import __version__
from runner.batch.plan import Item, label, plan
from runner.config import Settings
from runner.errors import UsageError
from runner.problems import Problem, find_labels
from runner.store.directory import DirectoryStore
from runner.store.manifest import Manifest
from runner.store.objects import Address, map_concurrently
from runner.store.pull import PullOutcome, pull
from runner.store.result import ProblemResult, RunOptions
from runner.store.runs import CommittedResult, RunStore

AT_ONCE = 4
"""Problems that are checked or sent at once, each with as many files as a store takes."""
LOOK_BACK = 20
"""Runs among which one that can be continued is looked for."""


def store_of(settings: Settings, *, patient: bool = True) -> RunStore | None:
    """The store that the settings name, if they name one."""
    if settings.store is None:
        return None
    address = Address(
        uri=settings.store,
        endpoint_url=settings.s3_endpoint_url,
        addressing=settings.s3_addressing,
        checksums=settings.s3_checksums,
    )
    return RunStore(address, patient=patient)


def claimed(settings: Settings) -> RunStore | None:
    """The same, made sure of before any work is started.

    Raises:
        StoreError: results cannot be written there, in one line.
    """
    impatient = store_of(settings, patient=False)
    if impatient is not None:
        impatient.claim()
    return store_of(settings)


def looked_at(settings: Settings) -> RunStore:
    """A store to be read.

    Raises:
        UsageError: none is named.
        StoreError: it is none, or cannot be read.
    """
    impatient, store = store_of(settings, patient=False), store_of(settings)
    if impatient is None or store is None:
        raise UsageError("no store is named", hint="--store s3://bucket/prefix, or KDRUN_STORE")
    impatient.check_layout()
    return store


def unfinished(store: RunStore, arguments: Mapping[str, Any]) -> Manifest | None:
    """The last run, if it was asked for the same and was stopped before its end."""
    found = map_concurrently(store.find_manifest, store.run_ids()[-LOOK_BACK:])
    manifests = [manifest for manifest in found if manifest is not None]
    last = max(manifests, key=lambda manifest: manifest.started, default=None)
    if last is None or last.state_now() not in ("interrupted", "killed"):
        return None
    return last if last.arguments == dict(arguments) else None


def plan_over(
    store: RunStore,
    run_id: str,
    output: DirectoryStore,
    problems: Sequence[Problem],
    options: RunOptions,
    *,
    resume: bool,
    only_failed: bool,
) -> list[Item]:
    """What to do about each problem, given what a store and the output directory hold.

    What passed here before, and is not in the store, only needs to be sent.
    """
    standing = store.find_results(run_id, [label(problem) for problem in problems])
    bad = _damages(store, run_id, standing.values())
    items = plan(
        problems,
        {name: found.result for name, found in standing.items()},
        lambda name, _: bad.get(name),
        options,
        __version__,
        resume=resume,
        only_failed=only_failed,
    )
    items = [replace(item, stored=standing.get(item.label)) for item in items]
    if only_failed or not resume:
        return items
    return [_from_here(item, output, options) for item in items]


def send(store: RunStore, run_id: str, output: DirectoryStore, items: Sequence[Item]) -> list[Item]:
    """The items, with the store holding what only the output directory held."""

    def one(item: Item) -> Item:
        if not item.only_here or item.earlier is None:
            return item
        version = item.stored.version if item.stored else None
        directory = output.directory(item.label)
        published = store.publish(run_id, item.earlier, directory, version)
        stands = published.committed
        return replace(item, earlier=stands.result, stored=stands, differs=published.differs)

    return map_concurrently(one, items, AT_ONCE)


def runs(settings: Settings, run_id: str | None) -> tuple[str, list[Manifest]]:
    """Manifests of one run or of all, of the store that is named or else of the output directory.

    Raises:
        StoreError: no such store, or no such run.
    """
    if settings.store is None:
        output = DirectoryStore(settings.output)
        names = [run_id] if run_id else output.run_ids()
        return str(settings.output), [output.manifest(name) for name in names]
    store = looked_at(settings)
    return str(store), [store.manifest(run_id)] if run_id else store.manifests()


def status_command(settings: Settings, run_id: str) -> str:
    """Return the command that shows a run which these settings find."""
    place: list[str] = []
    if settings.store is not None:
        place = ["--store", settings.store]
    elif settings.output != Settings.model_fields["output"].default:
        place = ["--output", str(settings.output)]
    return shlex.join(["kdrun", "status", run_id, *place])


def bring(
    settings: Settings, run_id: str, destination: Path, tell: Callable[[PullOutcome], None]
) -> list[PullOutcome]:
    """Pull what the settings select of a run.

    Raises:
        UsageError: it selects nothing.
        StoreError: no such store, no such run, or no place for it here.
    """
    store = looked_at(settings)
    manifest = store.manifest(run_id)
    levels = {f"level{n}" for n in settings.level}

    def wanted(label: str) -> bool:
        named = not settings.problem or any(find_labels([label], p) for p in settings.problem)
        return named and (not levels or PurePosixPath(label).parent.name in levels)

    done = pull(store, manifest, destination, wanted, tell)
    if not done and manifest.rows:
        raise UsageError(
            f"none of the run's {len(manifest.rows)} problems is selected, or has a result",
            hint=f"`{status_command(settings, run_id)}` lists them",
        )
    return done


def _from_here(item: Item, output: DirectoryStore, options: RunOptions) -> Item:
    found: ProblemResult | None = output.result(item.label)
    if item.earlier is not None or found is None:
        return item
    earlier = {item.label: found}
    (here,) = plan([item.problem], earlier, output.damage, options, __version__)
    if here.earlier is None:
        return item
    return replace(item, earlier=here.earlier, why="passed before, not stored yet")


def _damages(
    store: RunStore, run_id: str, standing: Iterable[CommittedResult]
) -> dict[str, str | None]:
    passed = [found.result for found in standing if found.result.status == "passed"]
    found = map_concurrently(lambda result: store.damage(run_id, result), passed, AT_ONCE)
    return dict(zip((result.label for result in passed), found, strict=True))
