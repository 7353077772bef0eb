"""Reads and completes the documents of a decomposition directory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from kdrun.parts import ObjectComparison, PartsVerification
from runner.errors import StoreError
from runner.store.result import RESULT_FILE, ProblemResult, hash_files
from runner.tree.document import Tree
from runner.untrusted_files import read_text

MEMORY_FILE = "from_memory.json"
"""File that says which object in memory a directory was made from."""


def read_verification(directory: Path) -> PartsVerification:
    """Return the verdict that a directory contains; `not_run` if it contains none."""
    comparison = None
    if (directory / MEMORY_FILE).exists():
        document = json.loads(read_text(directory / MEMORY_FILE))
        comparison = ObjectComparison(document["max_diff"], document["bitwise_equal"])
    try:
        result = ProblemResult.from_directory(directory)
    except StoreError:
        status = Tree.read(directory).metadata.verification_status
        return PartsVerification(status, object_comparison=comparison)
    return PartsVerification(
        result.status, result.reason, result.bitwise_equal, result.max_diff, comparison
    )


def add_files(directory: Path, texts: Mapping[str, str]) -> None:
    """Write files into a decomposition directory, and all of its files into result.json."""
    for name, text in texts.items():
        (directory / name).write_text(text, encoding="utf-8")
    result = ProblemResult.from_directory(directory)
    result = result.model_copy(update={"files": hash_files(directory)})
    temporary = directory / f".{RESULT_FILE}"
    temporary.write_text(result.to_json(), encoding="utf-8")
    temporary.replace(directory / RESULT_FILE)
