"""Mistakes of the first hour, made as a person makes them: each is one line that helps."""

import errno
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from commands import mounted

from runner.batch import stored_results
from runner.store.directory import DirectoryStore
from tests.cli.conftest import Kdrun
from tests.store.documents import manifest, row

SILU = str(Path(__file__).parents[2] / "data/samples/level1/silu.py")
READ_ONLY = "Read-only file system; choose another"


@pytest.fixture(scope="module")
def read_only(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that nobody can write to, not even who may do everything."""
    with mounted(tmp_path_factory.mktemp("read-only"), "ro,size=1m") as place:
        yield place


@pytest.fixture(scope="module")
def decomposition(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An output directory with one decomposition in it."""
    from click.testing import CliRunner

    from runner.cli import cli

    place = tmp_path_factory.mktemp("made")
    arguments = ["decompose", SILU, "--trials", "1", "--output", str(place)]
    done = CliRunner().invoke(cli, arguments, standalone_mode=False)
    assert done.return_value == 0, done.output
    return place


@pytest.mark.parametrize("arguments", [["decompose", SILU], ["submit", "--problem", SILU]])
def test_an_output_that_is_a_file_is_one_line(kdrun: Kdrun, arguments: list[str]) -> None:
    Path("good.py").touch()
    for output in ("good.py", "good.py/results"):
        ended = kdrun(*arguments, "--output", output)
        assert (ended.code, ended.out) == (2, "")
        assert ended.err == f"kdrun: --output {output!r}: good.py is a file; name a folder\n"
    assert kdrun("prompt", SILU, "--output", "good.py").code == 2


@pytest.mark.parametrize(
    ("arguments", "setting"),
    [
        (["decompose", SILU, "--output", "{place}/x"], "--output"),
        (["submit", "--problem", SILU, "--output", "{place}/x"], "--output"),
        (["submit", "--problem", SILU, "--store", "{place}/x"], "--store"),
        (["report", "{made}", "--to", "{place}/x.html"], "--to"),
        (["evaluate", "{made}", "--solutions", ".", "--write", "{place}/x.py"], "--write"),
        (["workloads", "{made}", "--export", "{place}/x"], "--export"),
        (["workloads", "{made}", "--parquet", "{place}/x"], "--parquet"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_a_read_only_folder_is_one_line_with_its_path_and_what_to_change(
    kdrun: Kdrun, read_only: Path, decomposition: Path, arguments: list[str], setting: str
) -> None:
    ended = kdrun(*(word.format(place=read_only, made=decomposition) for word in arguments))
    assert (ended.code, ended.out) == (2, ""), ended
    last = ended.err.splitlines()[-1]
    assert last.startswith(f"kdrun: {read_only}/x"), last
    assert last.endswith(f": {READ_ONLY} {setting}")
    assert "Traceback" not in ended.err


@pytest.mark.skipif(torch.accelerator.is_available(), reason="there is an accelerator here")
@pytest.mark.parametrize(
    "command",
    [
        f"decompose {SILU} --device cuda",
        "verify MADE --device xpu",
        "workloads MADE --measure --device gpu",
        f"submit --problem {SILU} --device mps",
    ],
    ids=lambda command: command.split()[0],
)
def test_a_device_that_is_not_there_is_no_failed_decomposition(
    kdrun: Kdrun, decomposition: Path, command: str
) -> None:
    words = command.replace("MADE", str(decomposition / "level1/silu")).split()
    ended = kdrun(*words)
    assert (ended.code, ended.out) == (2, "")
    last = ended.err.splitlines()[-1]
    wanted = f"--device {words[-1]}: torch finds no such device here (it finds: cpu); "
    assert last.startswith(f"kdrun: {wanted}"), last
    assert words[-1] == "cuda" or last.endswith("use --device cpu")
    assert not any(Path("output").rglob("result.json"))


def test_a_folder_of_somebody_else_is_one_line_wherever_it_is_met(
    kdrun: Kdrun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), "/home/her/runs")

    monkeypatch.setattr(stored_results, "read_manifests", refuse)
    ended = kdrun("status")
    assert (ended.code, ended.err) == (2, "kdrun: /home/her/runs: Permission denied\n")


@pytest.fixture
def run(kdrun: Kdrun) -> None:
    """A run `one` in the working directory: one problem failed, one timed out, many passed."""
    passed = [row(f"level1/{n}_relu") for n in range(21)]
    late = row("level2/late", status="timeout", reason="not finished after 8 s")
    wrong = row("level2/wrong", status="failed", reason="rules: a convolution is missing")
    DirectoryStore(Path("output")).write_manifest(manifest(*passed, late, wrong))


@pytest.mark.usefixtures("run")
def test_a_run_names_its_problems_failed_ones_first_and_says_how_to_list_the_rest(
    kdrun: Kdrun,
) -> None:
    lines = kdrun("status", "one").out.splitlines()
    first = lines.index("failed     level2/wrong: rules: a convolution is missing")
    assert lines[first + 1] == "timeout    level2/late: not finished after 8 s"
    assert lines[first + 2] == "passed     21: `kdrun status one --status passed` lists them"
    listed = kdrun("status", "one", "--status", "passed").out.splitlines()
    assert (len(listed), listed[0]) == (21, "passed     level1/0_relu")


@pytest.mark.usefixtures("run")
def test_a_manifest_that_is_broken_hides_no_other_run(kdrun: Kdrun) -> None:
    shutil.copytree("output/runs/one", "output/runs/two")
    Path("output/runs/two/manifest.json").write_text("{")
    listed = kdrun("status")
    assert [line.split()[:2] for line in listed.out.splitlines()[-2:]] == [
        ["one", "finished"],
        ["two", "unreadable"],
    ]
    why = "output/runs/two/manifest.json: not a readable manifest; submit it again"
    assert (listed.code, listed.err) == (0, f"but mind: {why}\n")
    document = json.loads(kdrun("status", "--json").out)
    assert document["runs"][1] == {"run_id": "two", "state": "unreadable", "reason": why}
    assert kdrun("status", "two").code == 2


def test_a_run_at_work_is_not_told_as_stopped(kdrun: Kdrun) -> None:
    done = manifest(row("level1/relu"), state="running", finished=None, selected=3)
    DirectoryStore(Path("output")).write_manifest(done)
    assert "2 waiting or at work: the run goes on" in kdrun("status", "one").out


@pytest.mark.usefixtures("run")
def test_problems_are_chosen_by_how_they_ended(kdrun: Kdrun) -> None:
    chosen = kdrun("status", "one", "--status", "timeout", "--status", "crashed")
    assert chosen.out == "timeout    level2/late: not finished after 8 s\n"
    document = json.loads(kdrun("status", "one", "--status", "failed", "--json").out)
    assert [row["problem"] for row in document["runs"][0]["rows"]] == ["wrong"]
    none = kdrun("status", "one", "--status", "error")
    counts = "21 passed, 1 timeout, 1 failed"
    assert (none.code, none.out) == (0, f"no problem of one ended as error: {counts}\n")


@pytest.mark.usefixtures("run")
def test_logs_of_a_problem_that_the_run_does_not_have_offer_close_names(kdrun: Kdrun) -> None:
    ended = kdrun("logs", "one", "wrnog")
    assert ended.err == (
        "kdrun: wrnog: none of the 23 problems of one so far; is it wrong? "
        "(`kdrun status one` lists them)\n"
    )


def test_a_problem_that_is_broken_now_keeps_what_passed_before(
    kdrun: Kdrun, decomposition: Path
) -> None:
    shutil.copytree(decomposition / "level1/silu", "output/level1/silu")
    for name in ("silu", "other"):
        Path(f"mine/level1/{name}.py").parent.mkdir(parents=True, exist_ok=True)
        Path(f"mine/level1/{name}.py").write_text("x = 1\n")
    ended = kdrun("decompose", "mine/level1/silu.py")
    assert (ended.code, ended.out[:19]) == (1, "error  level1/silu:")
    assert "the earlier one, which passed, stays: output/level1/silu\n" in ended.out
    assert json.loads(Path("output/level1/silu/result.json").read_text())["status"] == "passed"
    assert Path("output/level1/silu/original.py").read_text() == Path(SILU).read_text()
    never_there = kdrun("decompose", "mine/level1/other.py")
    assert json.loads(Path("output/level1/other/result.json").read_text())["status"] == "error"
    assert "look at" not in ended.out + never_there.out


def test_what_is_left_out_or_replaced_is_said(kdrun: Kdrun, decomposition: Path) -> None:
    shutil.copytree(decomposition / "level1/silu", "output/level1/silu")
    Path("mine/level1").mkdir(parents=True)
    for path in ("mine/level1/silu.py", "mine/beside.py"):
        Path(path).write_text(Path(SILU).read_text() + "\n# another text\n")
    Path("mine/setup.py").write_text("import setuptools\n")
    planned = kdrun("submit", "--data", "mine", "--dry-run")
    assert planned.err.splitlines()[:2] == [
        "but mind: mine has level folders, so these beside them are left out: beside.py",
        "but mind: passes of files with other contents are replaced: level1/silu",
    ]
    done = kdrun("decompose", "mine/level1/silu.py", "--trials", "1")
    said = "but mind: this replaced the pass of a file with other contents\n"
    assert said in done.out
    again = kdrun("decompose", "mine/level1/silu.py", "--trials", "1")
    assert (again.code, said in again.out) == (0, False)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "silu"], "Directory 'silu' does not exist; is it output/level1/silu?"),
        (["diff", "{made}", "level1/slu"], "does not exist; is it output/level1/silu?"),
        (["verify", "here/level1/silu"], "does not exist; is it output/level1/silu?"),
        (["verify", "nothing-like-it"], "Directory 'nothing-like-it' does not exist."),
        (["show", "output"], "output is a folder of decompositions; name one: output/level1/silu"),
        (["verify", "output/level1"], "name one: output/level1/silu"),
    ],
    ids=" ".join,
)
def test_a_name_where_a_decomposition_s_directory_must_be_is_told_where_it_is(
    kdrun: Kdrun, decomposition: Path, arguments: list[str], said: str
) -> None:
    Path("output").symlink_to(decomposition)
    made = decomposition / "level1/silu"
    ended = kdrun(*(word.format(made=made) for word in arguments))
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.endswith(f"{said}\n"), ended.err


@pytest.mark.parametrize(("operation", "hint"), [("sillu", "is it silu?"), ("x", "there are silu")])
def test_an_operation_that_no_kernel_does_is_one_line_with_those_there_are(
    kdrun: Kdrun, decomposition: Path, operation: str, hint: str
) -> None:
    ended = kdrun("workloads", str(decomposition), "--operation", operation)
    said = f"kdrun: --operation {operation}: no kernel here does it; {hint}\n"
    assert (ended.code, ended.out, ended.err) == (2, "", said)


def test_checking_the_dataset_looks_where_listing_it_does(
    kdrun: Kdrun, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runner.problems import selection

    monkeypatch.setattr(selection, "KERNELBENCH", Path("data/nowhere"))
    listed, checked = kdrun("data", "list", "--level", "1"), kdrun("data", "check")
    (root,) = listed.err.splitlines()
    assert root.startswith("the samples in ")
    said = f"kdrun: KernelBench is not here: the problems are {root}; `kdrun data fetch` gets it\n"
    assert (checked.code, checked.err) == (2, said)
    Path("mine").mkdir()
    Path("mine/a.py").touch()
    ended = kdrun("data", "check", "--data", "mine")
    assert ended.err.startswith("kdrun: mine is not KernelBench: it has none of its 250 files; ")
