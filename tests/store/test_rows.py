"""Rows of a run under way: on disk, in the manifest's own words, and those of another driver."""

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from documents import FIGURES, NOW, manifest, row

from runner.errors import StoreError
from runner.store.manifest import Manifest, count
from runner.store.manifest_row import Repeat, Row
from runner.store.row_files import Rows

LABELS = ["level1/2_b", "level1/10_a", "level2/c"]
A, B, C = (row(label, "sha") for label in LABELS)
KEPT_BYTES = 300
"""Most that may stay in memory of a row, of which a usual one takes ten times as much."""


@pytest.fixture
def rows(tmp_path: Path) -> Rows:
    return Rows(tmp_path / "run", LABELS)


def usual(label: str) -> Row:
    """With all that a row can say."""
    lost = Repeat(cause="node lost", said="gone", requested_memory_bytes=1 << 30, started=NOW)
    more = {"figures": FIGURES, "repeats": [lost, lost], "seconds_by_stage": {"load": 0.1}}
    return row(label, "0" * 64, health=["its output is constant"], **more)


def of(rows: Rows) -> Manifest:
    said = manifest(selected=10)
    return said.model_copy(update={"counts": dict(rows.counts), "rows": rows})


def test_rows_come_back_as_they_were_in_the_order_of_the_run(rows: Rows) -> None:
    whole = usual("level1/10_a")
    for each in (C, whole, A):
        rows.put(each)
    assert list(rows) == [A, whole, C]
    assert (len(rows), rows[1], rows[1:]) == (3, whole, [whole, C])
    assert rows.counts == {"passed": 3}


def test_a_manifest_says_the_same_of_rows_on_disk_as_of_rows_in_memory(rows: Rows) -> None:
    assert Manifest.model_validate_json(of(rows).to_json()).rows == []
    reason = 'a "reason"\nof two lines, in größe'
    for each in (usual("level1/2_b"), row("level2/c", status="failed", reason=reason)):
        rows.put(each)
    text = of(rows).to_json()
    read = Manifest.model_validate_json(text)
    assert read.rows == list(rows)
    assert text == read.to_json() == read.model_dump_json(indent=1, exclude_none=True) + "\n"


def test_the_last_word_about_a_problem_counts(rows: Rows) -> None:
    rows.put(row("level1/2_b", status="failed", reason="no"))
    rows.put(A)
    assert list(rows) == [A]
    assert rows.counts == {"passed": 1} == count(rows)


def test_what_is_kept_of_a_row_in_memory_does_not_grow_with_it(tmp_path: Path) -> None:
    labels = [f"level1/{n}" for n in range(400)]
    rows = Rows(tmp_path, labels)

    def grown(made: Iterator[Row]) -> int:
        tracemalloc.start()
        for each in made:
            rows.put(each)
        for _ in of(rows).pieces():
            pass
        kept, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return kept

    rows.put(usual(labels[0]))
    of(rows).to_json()
    assert grown(usual(label) for label in labels[1:]) < KEPT_BYTES * len(labels)


def test_nothing_is_left_in_the_folder_of_a_run(rows: Rows, tmp_path: Path) -> None:
    rows.put(A)
    assert list((tmp_path / "run").iterdir()) == []


def test_rows_of_another_driver_are_kept_as_long_as_it_says_them(rows: Rows) -> None:
    other, custom = row("level3/d"), row("custom/e")
    rows.put(A)
    rows.merge_rows([other, B, custom])
    assert [each.label for each in rows] == [*LABELS[:2], "level3/d", "custom/e"]
    assert rows.unselected_count == 2
    better = row("level1/10_a", "new", node="far")
    rows.merge_rows([A, better])
    assert list(rows) == [A, better]
    assert (rows.unselected_count, rows.counts) == (0, {"passed": 2})
    rows.merge_rows([])
    assert list(rows) == [A]


def test_a_row_of_our_own_takes_the_place_of_one_that_was_heard(rows: Rows) -> None:
    rows.merge_rows([row("level1/2_b", status="crashed", reason="no")])
    rows.put(A)
    rows.merge_rows([row("level1/2_b", status="crashed", reason="no")])
    assert list(rows) == [A]


def test_what_is_about_to_be_done_again_is_not_heard(rows: Rows) -> None:
    rows.merge_rows([A, B], forget=["level1/2_b"])
    assert list(rows) == [B]


def test_a_row_that_was_only_found_is_told_by_who_made_it(rows: Rows) -> None:
    made = row("level1/2_b", "sha", node="far", attempts=2)
    rows.put(row("level1/2_b", "sha", attempts=0))
    rows.put(row("level1/10_a", "own", attempts=0))
    rows.merge_rows([made, row("level1/10_a", "other")])
    assert list(rows) == [made, row("level1/10_a", "own", attempts=0)]


def test_a_folder_that_cannot_be_written_to_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"file/run: .*; choose another --output"):
        Rows(tmp_path / "file/run", LABELS)
