"""result.json: the status decides which fields exist, and files are what their sha256 says."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from runner.errors import StoreError
from runner.store.result import ProblemResult, RunOptions, first_mismatch, hash_files
from tests.store.documents import FIGURES

PASSED: dict[str, Any] = {
    "problem": "relu",
    "source_level": "level1",
    "status": "passed",
    "figures": FIGURES,
    "bitwise_equal": True,
    "started": datetime(2026, 1, 1, tzinfo=UTC),
    "source_sha256": "abc",
    "kdrun_version": "1",
    "torch_version": "2",
    "options": RunOptions(),
    "files": {"original.py": "abc"},
}


def test_a_passed_result_survives_the_way_to_disk_and_back(tmp_path: Path) -> None:
    result = ProblemResult.model_validate(PASSED)
    (tmp_path / "result.json").write_text(result.to_json())
    assert ProblemResult.from_directory(tmp_path) == result


@pytest.mark.parametrize(
    "change",
    [
        {"figures": None},
        {"files": {}},
        {"bitwise_equal": None},
        {"reason": "but"},
        {"stage": "verify"},
        {"status": "failed"},
        {"status": "done"},
        {"surprise": 1},
    ],
    ids=str,
)
def test_a_result_that_says_too_little_or_too_much_cannot_be_made(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ProblemResult.model_validate(PASSED | change)


@pytest.mark.parametrize(
    "content", [None, b"", b"{}", b"{", b"\xff\xfe", b'{"status": "passed"}'], ids=repr
)
def test_what_is_no_result_is_a_store_error(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "result.json").write_bytes(content)
    with pytest.raises(StoreError, match=r"result\.json: not a result; run the problem again"):
        ProblemResult.from_directory(tmp_path)


def test_every_file_is_hashed_but_caches_and_the_result_itself(tmp_path: Path) -> None:
    for name in ("original.py", "steps/a/refactored.py", "result.json", "__pycache__/x.pyc"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    assert set(hash_files(tmp_path)) == {"original.py", "steps/a/refactored.py"}


def test_a_changed_and_a_missing_file_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a")
    files = hash_files(tmp_path)
    assert first_mismatch(tmp_path, files) is None
    (tmp_path / "a.py").write_text("b")
    assert first_mismatch(tmp_path, files) == "a.py"
    (tmp_path / "a.py").unlink()
    assert first_mismatch(tmp_path, files) == "a.py"
