"""Keeps results: a problem's result, a run's manifest, output directories, stores of runs."""

from runner.statuses import Status
from runner.store.directory import DirectoryStore
from runner.store.manifest import Manifest
from runner.store.manifest_row import Row
from runner.store.objects import Address
from runner.store.result import Figures, ProblemResult, RunOptions
from runner.store.runs import CommittedResult, Publication, RunStore

__all__ = [
    "Address",
    "CommittedResult",
    "DirectoryStore",
    "Figures",
    "Manifest",
    "ProblemResult",
    "Publication",
    "Row",
    "RunOptions",
    "RunStore",
    "Status",
]
