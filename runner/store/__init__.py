"""Where results live: a problem's result, a run's manifest, and the directory that holds them."""

from runner.store.directory import DirectoryStore
from runner.store.manifest import Manifest, Row
from runner.store.result import Figures, ProblemResult, RunOptions, Status

__all__ = ["DirectoryStore", "Figures", "Manifest", "ProblemResult", "Row", "RunOptions", "Status"]
