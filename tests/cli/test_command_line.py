"""The door: quick, one line for an error, an exit code for each end, JSON and nothing else."""

import errno
import json
import os
import subprocess
from pathlib import Path

import pytest
from commands import KDRUN

from runner import __version__
from runner.batch import stored_results, submit
from runner.batch.submit import Preview
from tests.cli.conftest import Kdrun

ROOT = Path(__file__).parents[2]


def test_help_comes_within_300_ms() -> None:
    """Of a core's time: what else a machine does is not the command's."""
    best = 9.0
    for _ in range(5):
        before = os.times()
        done = subprocess.run([KDRUN, "--help"], capture_output=True, text=True, check=True)
        after = os.times()
        user = after.children_user - before.children_user
        best = min(best, user + after.children_system - before.children_system)
    assert "Usage: kdrun" in done.stdout
    assert 0 < best < 0.3


POWERS = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.p = nn.Parameter(torch.tensor(2.6))

    def forward(self, x):
        return self.fc(x.pow(self.p).mean(0).cos().pow(1 / self.p))

def get_inputs():
    return [torch.rand(4, 8)]

def get_init_inputs():
    return []
"""


def test_what_gives_nan_on_normal_numbers_draws_between_those_that_arrived(
    kdrun: Kdrun, tmp_path: Path
) -> None:
    (tmp_path / "powers.py").write_text(POWERS)
    done = kdrun("decompose", "powers.py")
    assert done.code == 0, done.out
    kernels = tmp_path / "output" / "custom" / "powers" / "level_0_kernel"
    (power,) = kernels.glob("pow_8_*.py")
    (linear,) = kernels.glob("linear_*.py")
    assert "torch.empty(8).uniform_(" in power.read_text()
    assert "torch.randn(8)" in linear.read_text()


def test_the_version_is_told(kdrun: Kdrun) -> None:
    assert kdrun("--version").out == f"kdrun {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sumbit"], "No such command 'sumbit'"),
        (["submit", "--levle", "1"], "No such option '--levle'"),
        (["submit", "my.py"], "my.py: submit takes no plain arguments; write --problem before"),
        (["submit", "--level", "one"], "Invalid value for '--level': 'one' is not a valid integer"),
        (["submit", "--level", "4"], "there is no level 4; the levels are 1, 2 and 3"),
        (["submit", "--problem", "nosuch*"], "--problem nosuch*: matches none of the"),
        (["submit", "--start", "999"], "--start 999 is past the end"),
        (["submit", "--start", "-1"], "--start -1: must be greater than or equal to 0"),
        (["submit", "--count", "0"], "--count 0: must be greater than or equal to 1"),
        (["submit", "--trials", "0"], "--trials 0: must be"),
        (["submit", "--timeout", "-3"], "--timeout -3.0: must be greater than 0"),
        (["verify", ".", "--to", "x.json"], "--to lists wrong kernels; give --power too"),
        (["verify", ".", ".", "--power", "--to", "x.json"], "--to is one file; name one DIR"),
        (["submit", "--mode", "fast"], "Invalid value for '--mode'"),
        (["submit", "--device", "cuda:1"], "--device 'cuda:1': write cpu, auto, or the type"),
        (["submit", "--data", "nowhere"], "--data nowhere: no such directory"),
        (["submit", "--config", "none.yaml"], "none.yaml: cannot be read"),
        (["submit", "--run-id", "a/b"], "--run-id 'a/b': it names a folder"),
        (["submit", "--only-failed"], "--only-failed: none of the selected problems"),
        (["submit", "--address", "here"], "--address here: not an address; such as"),
        (["submit", "--address", "127.0.0.1:1"], "no Ray at 127.0.0.1:1: "),
        (["decompose"], "Missing argument 'NAME|FILE|MODULE:CLASS'"),
        (["decompose", "none.py"], "none.py: no such file, and matches none of the"),
        (["decompose", "my/vit_blok.py"], "my/vit_blok.py: no such file, and matches none of the"),
        (["decompose", "."], ".: is a directory; `kdrun submit --data .` takes all problems in it"),
        (["decompose", "samples/level3/m*"], "samples/level3/m*: means 4 problems: level3/mamba, "),
        (["decompose", "/dev/null"], "/dev/null: not a regular file; save the model in a .py file"),
        (["decompose", "torch.nn:"], "torch.nn:: not package.module:Class"),
        (["decompose", "vit_block", "--inputs", "float32[2]"], "--inputs is for package.module:"),
        (["decompose", "nosuch:Net"], "nosuch:Net: there is no package 'nosuch', installed or in"),
        (["decompose", "torch.nn:ReLU", "--inputs", "int64[2]"], "--inputs int64[2]: has no range"),
        (["decompose", "torch.nn:ReLU", "--init", "{"], "--init: not JSON: Expecting property"),
        (["submit", "--problem", "nosuch:net"], "nosuch:net: there is no package 'nosuch', inst"),
        (["verify"], "Missing argument 'DIRECTORY...'"),
        (["verify", "nowhere"], "Invalid value for 'DIRECTORY...'"),
        (["verify", "."], ".: neither decomposition_tree.json nor original.py in it; name a "),
        (["status", "nosuch"], "no run 'nosuch' in output; the last ones there: none"),
        (["status", "--status", "failed"], "--status failed: of which run? Name a RUN, too."),
        (["status", "one", "--status", "bad"], "Invalid value for '--status': 'bad' is not one of"),
        (["data", "check", "--data", "nowhere"], "--data nowhere: no such directory"),
        (["submit", "--store", "s3:/bucket"], "--store 's3:/bucket': not a store; is it s3://bu"),
        (["submit", "--retries", "foo=2"], "--retries 'foo=2': no cause is called 'foo'; there"),
        (["data", "fetch", "--from", "nowhere"], "--from nowhere: no such file or directory"),
        (["data", "list", "--level", "9"], "there is no level 9"),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    kdrun: Kdrun, arguments: list[str], message: str
) -> None:
    ended = kdrun(*arguments)
    assert ended.code == 2, ended
    last = ended.err.splitlines()[-1]
    assert last.startswith(f"kdrun: {message}"), last
    assert "Traceback" not in ended.err
    assert ended.out == ""


def test_data_list_shows_the_samples_with_an_idea_of_each(kdrun: Kdrun) -> None:
    samples = str(ROOT / "data/samples")
    ended = kdrun("data", "list", "--data", samples, "--level", "3")
    assert ended.code == 0
    assert "simple_transformer  Transformer encoder that classifies" in ended.out
    document = json.loads(kdrun("data", "list", "--data", samples, "--json").out)
    levels = {row["source_level"] for row in document["problems"]}
    assert levels == {"level1", "level2", "level3"}
    assert all(len(row["idea"]) > 5 for row in document["problems"])


def test_readmes_names_are_found_once_kernelbench_is_fetched(
    kdrun: Kdrun, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("runner.batch.submit._preview", lambda run, item, most: Preview(item))
    for name in ("9_ResNet18", "5_AlexNet"):
        path = tmp_path / f"data/kernelbench/level3/{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    ended = kdrun("submit", "--problem", "*resnet*", "--problem", "vit_block", "--dry-run")
    assert ended.code == 0, ended
    assert [line.split()[0] for line in ended.out.splitlines() if "level3" in line] == [
        "level3/9_ResNet18",
        "level3/vit_block",
    ]
    assert ended.err == (
        f"KernelBench in {tmp_path / 'data/kernelbench'} and the samples in "
        f"{ROOT / 'data/samples'}: 2 selected, 2 to run\n"
    )
    listed = kdrun("data", "list")
    assert "vit_block" not in listed.out
    assert (
        listed.err.splitlines()[1]
        == f"the samples in {ROOT / 'data/samples'}, by name as samples/NAME"
    )


@pytest.mark.parametrize("name", ["silu", "SiLU", "level1/silu.py", "samples/silu", "sil*"])
def test_decompose_takes_a_name_as_submit_does(
    kdrun: Kdrun, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Path] = []
    monkeypatch.setattr(
        "runner.batch.local_execution.decompose", lambda file, *_: taken.append(file) or 1 / 0
    )
    with pytest.raises(ZeroDivisionError):
        kdrun("decompose", name)
    assert taken == [ROOT / "data/samples/level1/silu.py"]


def test_decompose_says_which_file_a_name_means(kdrun: Kdrun) -> None:
    Path("silu").mkdir()  # a folder of that name is no problem
    ended = kdrun("decompose", "silu")
    assert ended.code == 0, ended
    assert ended.err == f"silu: {ROOT / 'data/samples/level1/silu.py'}\n"
    assert ended.out.startswith("passed  level1/silu\n")


def test_a_problem_that_is_broken_exits_with_1_and_says_its_line(kdrun: Kdrun) -> None:
    Path("broken.py").write_text("import torch\ndef f(:\n")
    ended = kdrun("decompose", "broken.py")
    assert ended.code == 1
    assert "error  custom/broken: SyntaxError: invalid syntax (line 2)" in ended.out


@pytest.mark.long
def test_decompose_and_verify_print_json_and_nothing_else(kdrun: Kdrun) -> None:
    problem = str(ROOT / "data/samples/level2/linear_gelu.py")
    done = kdrun("decompose", problem, "--json")
    assert done.code == 0, done
    assert json.loads(done.out)["status"] == "passed"
    assert "passed  level2/linear_gelu" in done.err
    verified = kdrun("verify", "output/level2/linear_gelu", "--json")
    assert verified.code == 0, verified
    document = json.loads(verified.out)
    assert document[0]["status"] == "passed"
    assert [gate["gate"] for gate in document[0]["verification"]["gates"]]


def test_a_directory_that_was_tampered_with_exits_with_1(kdrun: Kdrun) -> None:
    kdrun("decompose", str(ROOT / "data/samples/level1/silu.py"))
    (kernel,) = Path("output/level1/silu/level_0_kernel").glob("*.py")
    kernel.write_text(kernel.read_text().replace("def forward(", "def backward("))
    ended = kdrun("verify", "output/level1/silu")
    assert ended.code == 1
    assert ended.out.startswith("failed  output/level1/silu: ")


def test_status_without_runs_says_so(kdrun: Kdrun) -> None:
    assert kdrun("status").out == "no runs in output\n"


def test_a_file_that_cannot_be_written_is_told_before_the_work(
    kdrun: Kdrun, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("made").mkdir()
    Path("made/original.py").touch()
    Path("file").touch()
    monkeypatch.setattr(submit, "run_without_commit", lambda *_: pytest.fail("it was judged"))
    ended = kdrun("verify", "made", "--power", "--to", "file/kernels.json")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        "kdrun: file/kernels.json: a file is where a folder must be; choose another --to\n"
    )


@pytest.mark.parametrize("arguments", [["decompose"], ["prompt"], ["submit", "--problem"]])
def test_a_name_that_is_too_long_for_a_path_is_one_line(kdrun: Kdrun, arguments: list[str]) -> None:
    ended = kdrun(*arguments, "x" * 300)
    assert (ended.code, ended.out) == (2, "")
    assert "matches none of the " in ended.err.splitlines()[-1]


def test_a_full_disk_below_stdout_is_told_as_that(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(
            [KDRUN, "data", "list"], stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path
        )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "kdrun: stdout: No space left on device"


def test_an_error_of_the_system_that_names_no_file_keeps_its_traceback(
    kdrun: Kdrun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(stored_results, "read_manifests", refuse)
    with pytest.raises(PermissionError):
        kdrun("status")


@pytest.mark.long
def test_power_lists_wrong_kernels_where_it_is_told_to(kdrun: Kdrun) -> None:
    done = kdrun("decompose", str(ROOT / "data/samples/level2/linear_gelu.py"), "--power")
    assert done.code == 0, done
    made = Path("output/level2/linear_gelu")
    listed = (made / "verification/power.json").read_bytes()
    assert json.loads((made / "result.json").read_text())["options"]["power"]
    before = {path: path.read_bytes() for path in made.rglob("*") if path.is_file()}

    verified = kdrun("verify", str(made), "--power", "--to", "wrong/kernels.json")

    assert verified.code == 0, verified
    assert "power        passed (2 checks)" in verified.out
    assert "caught, 0 not (wrong/kernels.json)" in verified.out
    assert Path("wrong/kernels.json").read_bytes() == listed
    assert {path: path.read_bytes() for path in made.rglob("*") if path.is_file()} == before
