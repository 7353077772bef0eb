"""Keeps results: a problem's result, a run's manifest, output directories, stores of runs."""

from runner.statuses import Status
from runner.store.directory import DirectoryStore
from runner.store.manifest import Manifest
from runner.store.manifest_row import Row
from runner.store.objects import Address
from runner.store.result import Figures, ProblemResult, RunOptions
from runner.store.runs import Published, RunStore, Standing

__all__ = [
    "Address",
    "DirectoryStore",
    "Figures",
    "Manifest",
    "ProblemResult",
    "Published",
    "Row",
    "RunOptions",
    "RunStore",
    "Standing",
    "Status",
]
