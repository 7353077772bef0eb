"""What problems print: kept with their files, shown from here and from a store, no credentials."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import KDRUN

from runner.batch.attempt import decompose
from runner.batch.child import problem_logs
from runner.batch.child.task import Task, TaskTarget
from runner.batch.machine import GIB
from runner.config import Settings
from runner.errors import StoreError, UsageError
from runner.store.directory import DirectoryStore
from runner.store.objects import Address
from runner.store.result import RunOptions
from runner.store.runs import RunStore
from runner.verify import VerifyOptions, verify
from tests.store.documents import manifest, row, save

pytestmark = pytest.mark.long


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A run `one` of four problems, of which two have printed something until now."""
    output = DirectoryStore(tmp_path / "output")
    output.write_manifest(manifest(row("level1/a_norm"), row("level2/a_norm"), row("level3/vit")))
    for label, text in (("level3/vit", "seen: 7\n"), ("level3/still_running", "half")):
        path = output.log_path("one", label)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Settings(output=output.root)


@pytest.mark.parametrize("name", ["vit", "level3/vit", "v*", "samples/VIT"])
def test_a_log_is_found_by_the_problem_s_name_or_label(settings: Settings, name: str) -> None:
    assert problem_logs.read_log(settings, "one", name) == b"seen: 7\n"


def test_a_log_is_shown_while_its_problem_still_runs(settings: Settings) -> None:
    assert problem_logs.read_log(settings, "one", "still_running") == b"half"


def test_a_problem_that_printed_nothing_has_an_empty_log(settings: Settings) -> None:
    assert problem_logs.read_log(settings, "one", "level1/a_norm") == b""


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        ("a_norm", "a_norm: may be level1/a_norm, level2/a_norm; name one of them"),
        ("../x", "there are level1/a_norm, level2/a_norm, level3/still_running, level3/vit"),
        ("a_nrom", "a_nrom: none of the 4 problems of one so far; is it a_norm?"),
        ("level3/vt", "level3/vt: none of the 4 problems of one so far; is it level3/vit?"),
    ],
)
def test_a_name_that_is_not_one_problem_s_is_refused(
    settings: Settings, problem: str, message: str
) -> None:
    with pytest.raises(UsageError) as refused:
        problem_logs.read_log(settings, "one", problem)
    assert message in str(refused.value)
    if "may be" not in message:
        command = f"`kdrun status one --output {settings.output}`"
        assert str(refused.value).endswith(f" ({command} lists them)")


def test_no_such_run_is_one_line(settings: Settings) -> None:
    with pytest.raises(StoreError, match="no run 'two'"):
        problem_logs.read_log(settings, "two", "vit")


def test_credentials_are_taken_out_and_nothing_else(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"key wJalrXUtnFEMI\xff region us-east-1 short abc\n")
    problem_logs.hide_credentials(
        log,
        {
            "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI",
            "AWS_REGION": "us-east-1",
            "MY_TOKEN": "abc",
        },
    )
    assert log.read_bytes() == b"key [hidden]\xff region us-east-1 short abc\n"


@pytest.mark.usefixtures("own_fork_server")
def test_a_log_is_among_a_problem_s_files_and_in_the_store_without_credentials(
    write: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")
    store = RunStore(Address(uri=str(tmp_path / "store")))
    store.claim()
    problem = write("talks")
    problem.write_text(problem.read_text() + "print('it says', 'wJalrXUt' + 'nFEMI')\n")
    task = Task(
        problem=problem,
        label="level1/talks",
        directory=tmp_path / "out/level1/talks",
        scratch=tmp_path / "out/level1/.scratch",
        options=RunOptions(trials=1),
        memory_bytes=2 * GIB,
        most_memory_bytes=2 * GIB,
        timeout_s=300,
        target=TaskTarget(address=store.address, run_id="one"),
    )
    done = decompose(task, tmp_path / "log")

    assert done.answer.status == "passed"
    kept = (task.directory / problem_logs.LOG_PATH).read_text()
    assert "it says [hidden]" in kept
    assert done.result is not None
    assert problem_logs.LOG_PATH in done.result.files
    assert verify(task.directory, VerifyOptions(trials=1)).status == "passed"

    save(store, manifest(row("level1/talks")))
    shown = subprocess.run(
        [KDRUN, "logs", "one", "talks", "--store", str(tmp_path / "store")],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert (shown.returncode, shown.stdout) == (0, kept)
