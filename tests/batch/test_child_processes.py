"""Real children that are really limited, killed and cleaned up after."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runner.batch.child import child_process
from runner.batch.child.child_process import (
    Outcome,
    Request,
    clean_environment,
    run_child,
)

MIB = 1 << 20
Run = Callable[..., Outcome]


@pytest.fixture(scope="module", autouse=True)
def fork_server_that_finds_our_functions(own_fork_server: None) -> Iterator[None]:
    patch = pytest.MonkeyPatch()
    patch.setenv("PYTHONPATH", str(Path(__file__).parent))
    patch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    patch.setattr(child_process, "PRELOADED", ("torch",))
    yield
    patch.undo()


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def run(
        function: str, argument: str = "", *, mib: int = 200, timeout_s: float = 300
    ) -> Outcome:
        name = f"child_functions:{function}"
        return run_child(Request(name, argument, tmp_path, tmp_path / "log", mib * MIB, timeout_s))

    return run


def ended(pid: int) -> bool:
    """Whether it is gone, or goes while we look."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def test_what_children_share_is_imported_by_the_server(run: Run, tmp_path: Path) -> None:
    def is_imported(imports: tuple[str, ...]) -> str | None:
        function = "child_functions:is_imported"
        log = tmp_path / "log"
        return run_child(Request(function, "wave", tmp_path, log, 200 * MIB, 60, imports)).answer

    assert is_imported(()) == "False"
    assert is_imported(("no_such_module", "wave")) == "True"
    assert is_imported(()) == "True"  # those after it have it, too


def test_a_child_answers_and_leaves_nothing_in_its_directory(run: Run, tmp_path: Path) -> None:
    outcome = run("shout", "hello")
    assert (outcome.answer, outcome.exit_code, outcome.signal) == ("HELLO", 0, None)
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def test_what_a_child_puts_aside_lies_where_its_disk_is_watched(run: Run, tmp_path: Path) -> None:
    """And not in a /tmp that may be memory, or that nobody clears when the child is killed."""
    assert Path(str(run("leave_a_temporary_file").answer)).parent == tmp_path


def test_a_second_child_starts_in_milliseconds(run: Run) -> None:
    run("shout")
    assert min(run("shout").seconds for _ in range(5)) < 0.5


def test_a_child_that_exceeds_its_memory_gets_a_memory_error(run: Run, tmp_path: Path) -> None:
    outcome = run("allocate", "400", mib=100)
    assert outcome.answer is None
    assert outcome.exit_code == 1
    assert (tmp_path / "log").read_text().rstrip().endswith("MemoryError")


def test_the_limit_is_what_a_child_may_take_on_top_of_what_is_imported(run: Run) -> None:
    assert run("allocate", "150", mib=200).answer == "kept"


def test_torch_says_that_it_cannot_allocate(run: Run) -> None:
    assert "can't allocate memory" in str(run("allocate_a_tensor", "500", mib=100).answer)


def test_peak_memory_is_measured(run: Run) -> None:
    low, high = run("allocate", "1"), run("allocate", "150")
    assert 120 * MIB < high.peak_memory_bytes - low.peak_memory_bytes < 180 * MIB


@pytest.mark.parametrize("function", ["hang", "ignore_everything_and_hang"])
def test_a_child_that_hangs_is_killed_at_its_deadline(run: Run, function: str) -> None:
    outcome = run(function, timeout_s=0.5)
    assert outcome.timed_out
    assert outcome.answer is None
    assert outcome.seconds < 60


def test_a_segfault_is_told_by_its_name_and_the_next_child_is_well(run: Run) -> None:
    assert run("segfault").describe_end() == "was killed by SIGSEGV"
    assert run("shout", "still here").answer == "STILL HERE"


def test_sys_exit_is_an_exit_code_and_no_answer(run: Run) -> None:
    outcome = run("sys_exit")
    assert (outcome.answer, outcome.describe_end()) == (None, "ended with exit code 7")


def test_an_answer_that_the_code_itself_left_behind_is_none(run: Run) -> None:
    outcome = run("forge_an_answer")
    assert (outcome.answer, outcome.exit_code) == (None, 0)


def test_an_exit_code_of_zero_without_an_answer_is_no_success(run: Run) -> None:
    outcome = run("exit_as_if_well")
    assert (outcome.answer, outcome.exit_code) == (None, 0)


def test_what_a_child_left_running_is_ended_with_it(run: Run) -> None:
    outcome = run("leave_a_daemon")
    assert ended(int(str(outcome.answer)))


def test_what_a_hanging_child_left_running_is_ended_with_it(run: Run, tmp_path: Path) -> None:
    outcome = run("leave_a_daemon_and_hang", str(tmp_path / "pid"), timeout_s=3)
    assert outcome.timed_out
    assert ended(int((tmp_path / "pid").read_text()))


def test_a_log_keeps_the_head_and_the_tail(run: Run, tmp_path: Path) -> None:
    run("print_much")
    log = (tmp_path / "log").read_text()
    assert log.startswith("line 0 ")
    assert "bytes left out" in log
    assert log.rstrip().rpartition("\n")[2].startswith("line 99999 ")
    assert len(log) < 2 * MIB


def test_a_child_sees_no_credentials(run: Run) -> None:
    names = str(run("environment").answer).splitlines()
    assert "PATH" in names
    assert "AWS_SECRET_ACCESS_KEY" not in names


@pytest.mark.parametrize(
    "name",
    [
        *("AWS_PROFILE", "KDRUN_STORE", "RAY_ADDRESS", "HF_TOKEN", "MY_PASSWORD", "OPENAI_API_KEY"),
        *("KUBECONFIG", "NETRC", "PGPASS", "WANDB_KEY", "GITHUB_PAT", "HTTPS_PROXY"),
        *("DATABASE_URL", "SSH_AUTH_SOCK", "TORCH_API_KEY", "A_NAME_THAT_NOBODY_KNOWS"),
    ],
)
def test_only_variables_that_say_how_to_compute_reach_a_problem(name: str) -> None:
    told = {name: "x", "HOME": "/", "PYTHONPATH": "/", "LC_ALL": "C", "OMP_PROC_BIND": "true"}
    assert told.keys() & clean_environment(told).keys() == told.keys() - {name}


def test_a_child_that_kills_its_server_costs_only_itself(run: Run) -> None:
    outcome = run("kill_the_server")
    assert outcome.answer is None
    assert outcome.signal == "SIGKILL"
    assert run("shout", "again").answer == "AGAIN"


def test_a_child_that_kills_its_server_leaves_no_daemon(run: Run, tmp_path: Path) -> None:
    number = tmp_path / "number"
    assert run("leave_a_daemon_and_kill_the_server", str(number)).answer is None
    deadline = time.monotonic() + 10
    while Path(f"/proc/{number.read_text()}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{number.read_text()}").exists()


def test_a_child_can_use_threads_though_its_server_has_none(run: Run) -> None:
    assert run("threads", mib=1000).answer == "216000000.0"


def test_a_child_finds_torch_prepared_and_cuda_untouched_and_is_told_its_task_s_gpu(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("shout")  # its server is older than the task
    for number in ("3", "5"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", number)
        assert run("gpu").answer == f"True False {number}"


def test_each_thread_has_a_server_of_its_own(run: Run) -> None:
    answers: list[str | None] = []
    other = threading.Thread(target=lambda: answers.append(run("shout", "other").answer))
    other.start()
    other.join()
    assert answers == ["OTHER"]


def test_bytecode_is_kept_of_what_the_server_imports_and_of_nothing_that_a_child_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "of_the_server.py").write_text("")
    (tmp_path / "of_the_child.py").write_text("def run(text): return text\n")
    cache = tmp_path / "cache"
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(cache))
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    server = child_process._ForkServer(("of_the_server",))
    request = Request("of_the_child:run", "x", tmp_path, tmp_path / "log", 200 * MIB, 300)
    assert server.run(request).answer == "x"
    server.close()
    kept = {path.name.partition(".")[0] for path in cache.rglob("*.pyc")}
    assert "of_the_server" in kept
    assert "of_the_child" not in kept


def test_a_server_that_still_imports_is_ended_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(1000)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    server = child_process._ForkServer(("slow",))
    server.close()
    assert server.process.returncode == -signal.SIGKILL


def test_a_server_whose_folder_is_deleted_while_it_starts_serves_all_the_same(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "deleted"
    folder.mkdir()
    server = [sys.executable, "-P", "-m", "runner.batch.child.fork_server", "json"]
    delete_and_start = (
        f"import os, pathlib; pathlib.Path.cwd().rmdir(); os.execv({server[0]!r}, {server})"
    )
    started = subprocess.run(
        [sys.executable, "-c", delete_and_start],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert '"ready"' in started.stdout, started.stderr


def test_a_child_dies_with_the_process_that_wanted_it(tmp_path: Path) -> None:
    program = f"""
from pathlib import Path
from runner.batch.child import child_process
child_process.PRELOADED = ()
here = Path({str(tmp_path)!r})
child_process.run_child(child_process.Request(
    "child_functions:leave_a_daemon_and_hang", str(here / "pid"), here, here / "log", 1 << 28, 600
))
"""
    wanted = subprocess.Popen([sys.executable, "-c", program])
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert wanted.poll() is None
        time.sleep(0.05)
    wanted.send_signal(signal.SIGKILL)
    wanted.wait()
    assert ended(int((tmp_path / "pid").read_text()))
