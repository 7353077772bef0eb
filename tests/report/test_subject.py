"""What a report is about, and what is said where not all of it is there."""

import os
import shutil
import socket
from pathlib import Path

import pytest
from sample_run import RUN, TAKEN_APART, write_run

from runner.errors import DecompositionError, StoreError, UsageError
from runner.report.page.problem_data import failure_data
from runner.report.subject import find_subject
from runner.store.result import RESULT_FILE, ProblemResult, sha256_of
from runner.tree.document import TREE_FILE


def test_a_run_is_found_by_id_by_directory_and_by_its_output(made: Path) -> None:
    by_id = find_subject(RUN, made)
    by_directory = find_subject(str(made / "runs" / RUN), Path("elsewhere"))
    assert [found.label for found in by_id.problems] == sorted(TAKEN_APART)
    assert by_id == by_directory
    assert by_id.place == made / "runs" / RUN
    assert by_id.manifest is not None
    assert find_subject(str(made), Path("elsewhere")) == by_id
    assert by_id.notes == ()


def test_a_directory_that_holds_more_than_one_run_is_all_of_it(output: Path) -> None:
    shutil.copytree(output / "level3/mlp", output / "level3/another")
    subject = find_subject(str(output), Path("elsewhere"))
    assert subject.manifest is None
    assert len(subject.problems) == len(TAKEN_APART) + 1


def test_a_run_that_was_pulled_has_its_problems_beside_its_manifest(
    output: Path, tmp_path: Path
) -> None:
    pulled = tmp_path / "pulled"
    shutil.copytree(output / "runs" / RUN, pulled)  # as a bucket has them, one beside the other
    for label in TAKEN_APART:
        shutil.copytree(output / label, pulled / label)
    subject = find_subject(str(pulled), tmp_path)
    assert len(subject.decompositions) == len(TAKEN_APART)
    assert subject.problems[0].directory.is_relative_to(pulled)


def test_a_decomposition_is_a_subject_of_one(made: Path) -> None:
    (found,) = find_subject(str(made / "level3/mlp"), made).problems
    assert (found.label, found.row.status) == ("level3/mlp", "passed")


def test_a_problem_that_could_not_be_taken_apart_is_a_subject_of_one(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.py").write_text("x = 1\n")
    fields = {"problem": "bad", "source_level": "custom", "status": "error", "reason": "no Model"}
    none = {"figures": None, "bitwise_equal": None, "max_diff": None, "files": {}}
    result = ProblemResult.from_directory(made / "level3/mlp").model_copy(
        update=fields | none | {"source_sha256": sha256_of(tmp_path / "bad.py"), "stage": "load"}
    )
    place, log = tmp_path / "output/custom/bad", tmp_path / "output/logs/custom/bad.log"
    for path, text in ((place / RESULT_FILE, result.to_json()), (log, "printed\n")):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    subject = find_subject(str(place), tmp_path / "output")
    (found,) = subject.problems
    assert (found.label, found.row.status, found.tree) == ("custom/bad", "error", None)
    told = failure_data(found, subject)
    assert told["source"] == "x = 1\n"
    assert told["log"] == "printed\n"
    assert told["command"].startswith("kdrun decompose bad.py")


def test_a_decomposition_that_nobody_verified_says_so(output: Path) -> None:
    (output / "level3/mlp" / RESULT_FILE).unlink()
    (found,) = find_subject(str(output / "level3/mlp"), output).problems
    assert found.row.status == "cancelled"
    assert found.row.reason == "not verified: no result.json in it"


def test_a_run_that_is_still_going_is_reported_as_far_as_it_is(output: Path) -> None:
    write_run(
        output,
        state="running",
        selected=250,
        driver_host=socket.gethostname(),
        driver_pid=os.getpid(),
    )
    subject = find_subject(RUN, output)
    assert subject.notes == ("The run is still going: 246 problems of 250 to come.",)
    assert len(subject.decompositions) == len(TAKEN_APART)


def test_a_run_whose_driver_is_gone_is_not_called_running(output: Path) -> None:
    write_run(
        output,
        state="running",
        selected=5,
        driver_host=socket.gethostname(),
        driver_pid=2**22 - 1,
    )
    assert find_subject(RUN, output).notes == ("The run was killed: 1 problem of 5 not run.",)


def test_missing_artifacts_are_named_and_the_rest_is_there(output: Path) -> None:
    shutil.rmtree(output / "level3/mlp")
    (output / "level1/softmax" / TREE_FILE).write_text("{}")
    subject = find_subject(RUN, output)
    assert {found.label for found in subject.decompositions} == {
        "level2/linear_gelu",
        "level3/attention_block",
    }
    (note,) = subject.notes
    assert note.startswith("Not all is there: level1/softmax: ")
    assert note.endswith(", and 1 more.")


def test_what_a_later_run_made_is_said_to_be_another(output: Path) -> None:
    path = output / "level3/mlp" / RESULT_FILE
    path.write_text(path.read_text() + "\n")
    found = next(f for f in find_subject(RUN, output).problems if f.label == "level3/mlp")
    assert (found.missing, found.later) == (None, True)
    assert found.tree is not None
    assert find_subject(RUN, output).notes == ("Shown as a later run made it: level3/mlp.",)


def test_a_folder_of_one_level_is_a_subject(output: Path) -> None:
    shutil.copytree(output / "level3/mlp", output / "level3/.mlp.old")
    subject = find_subject(str(output / "level3"), Path("elsewhere"))
    assert (subject.title, subject.manifest) == ("level3", None)
    assert [found.label for found in subject.problems] == ["level3/attention_block", "level3/mlp"]


@pytest.mark.parametrize(
    ("what", "error", "said"),
    [
        ("no-such-run", StoreError, "no run 'no-such-run'"),
        ("no/such/directory", UsageError, "no such directory"),
    ],
)
def test_what_is_not_there_is_refused(
    made: Path, what: str, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        find_subject(what, made)


def test_a_directory_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "level1").mkdir()
    with pytest.raises(UsageError, match="no decomposition, no run, and none in it"):
        find_subject(str(tmp_path), tmp_path)
    (tmp_path / "level1" / "a.txt").touch()
    with pytest.raises(UsageError, match="a file; name a run or a directory"):
        find_subject(str(tmp_path / "level1" / "a.txt"), tmp_path)


def test_a_damaged_manifest_and_a_damaged_tree_are_one_line(output: Path) -> None:
    (output / "runs" / RUN / "manifest.json").write_text("{")
    with pytest.raises(StoreError, match="not a readable manifest"):
        find_subject(RUN, output)
    (output / "level3/mlp" / TREE_FILE).write_text("{}")
    with pytest.raises(DecompositionError, match="decompose the problem again"):
        find_subject(str(output / "level3/mlp"), output)
