"""Settings from four sources, each wrong in its own way."""

import re
import runpy
from pathlib import Path
from typing import Any, Literal

import pytest

from runner import config
from runner.cli.options import SettingsCommand
from runner.config import Settings, load_settings
from runner.errors import ConfigError, KdrunError, UsageError

ROOT = Path(__file__).parents[2]
DEFAULT = ROOT / "configs" / "default.yaml"


@pytest.fixture(autouse=True)
def in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(text: str | bytes) -> Path:
    path = Path("settings.yaml")
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_flag_wins_over_a_variable_over_a_file_over_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = write("trials: 3\ntimeout: 3\nworkers: 3\n")
    monkeypatch.setenv("KDRUN_TRIALS", "4")
    monkeypatch.setenv("KDRUN_TIMEOUT", "4")
    settings = load_settings({"trials": 5}, file)
    assert (settings.trials, settings.timeout, settings.workers) == (5, 4, 3)
    assert settings.mode == "eval"


def test_the_default_file_says_every_setting_and_its_default() -> None:
    assert load_settings({}, DEFAULT).model_dump() == load_settings({}).model_dump()


def test_the_page_and_the_default_file_are_made_of_the_settings() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "make_settings.py"))
    page, file = (ROOT / "docs" / "settings.md").read_text(), DEFAULT.read_text()
    assert (page, file) == (made["page"](), made["file"]()), "make settings"


def test_one_field_is_a_flag_a_line_in_the_file_and_a_row_of_the_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class More(Settings):
        shade_of_blue: Literal["light", "dark"] | None = None
        """Shade of the sky; default the season's.
        This is a test."""

    made = runpy.run_path(str(ROOT / "docs" / "make_settings.py"))
    assert "\n# Shade of the sky; default the season's. This is a test.\nshade_of_blue: null\n" in (
        made["file"](More)
    )
    assert "| `KDRUN_SHADE_OF_BLUE` | `shade_of_blue` |  | Shade of the sky;" in made["page"](More)
    monkeypatch.setattr(config, "Settings", More)
    command = SettingsCommand("paint", settings=None)
    context = command.make_context("paint", ["--shade-of-blue", "dark"])
    assert context.params["shade_of_blue"] == "dark"
    assert "[light|dark]  Shade of the sky; default the season's.\n" in command.get_help(context)


def test_the_working_directory_s_default_file_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("configs").mkdir()
    Path("configs/default.yaml").write_text("trials: 7")
    assert load_settings({}).trials == 7
    monkeypatch.setenv("KDRUN_CONFIG", str(write("trials: 8")))
    assert load_settings({}).trials == 8


@pytest.mark.parametrize(
    ("written", "bytes_"),
    [("16GiB", 16 << 30), ("1.5GiB", 3 << 29), ("512MiB", 1 << 29), ("16GB", 16 * 10**9)],
)
def test_memory_is_written_with_its_unit(written: str, bytes_: int) -> None:
    assert load_settings({"memory": written}).memory == bytes_
    assert load_settings({}, write(f"memory: {written}")).memory == bytes_


def test_lists_are_written_with_commas_in_a_variable_and_alone_in_a_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KDRUN_LEVEL", "1, 2")
    monkeypatch.setenv("KDRUN_PROBLEM", "relu*,*gelu*")
    settings = load_settings({})
    assert (settings.level, settings.problem) == ([1, 2], ["relu*", "*gelu*"])
    monkeypatch.delenv("KDRUN_LEVEL")
    assert load_settings({}, write("level: 3")).level == [3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("trails: 3", "settings.yaml:1: trails: no such setting; is it trials?"),
        ("trials: 0", "settings.yaml:1: trials: 0: must be greater than or equal to 1"),
        ("mode: fast", "settings.yaml:1: mode: 'fast': must be 'eval' or 'train'"),
        ("timeout: .inf", "settings.yaml:1: timeout: inf: must be a finite number"),
        (
            "memory: 16",
            "settings.yaml:1: memory: 16: less than any problem takes; write it with its unit",
        ),
        (
            "memory: 16 apples",
            "settings.yaml:1: memory: '16 apples': must be a size, such as 16GiB",
        ),
        ("level: [one]", "settings.yaml:1: level: 'one': must be a whole number"),
        ("run_id: ../up", "settings.yaml:1: run_id: '../up': it names a folder, such as nightly-3"),
        ("trials: 2\n\nmode: fast", "settings.yaml:3: mode: 'fast': must be"),
        (
            "# so\nretries: {node: 1}",
            "settings.yaml:2: retries: {'node': 1}: no cause is called 'node'",
        ),
        ("retries:\n  node_lost: x", "settings.yaml:1: retries: 'x': must be a whole number"),
        ("- trials", "settings.yaml: not a mapping; write lines such as `trials: 2`"),
        ("trials: [1", "settings.yaml:1: not YAML: expected ',' or ']'"),
        ("a: b: c", "settings.yaml:1: not YAML: mapping values are not allowed here"),
        (b"trials: \xff", "settings.yaml: not UTF-8; save the file as UTF-8"),
    ],
    ids=str,
)
def test_a_broken_file_is_told_with_the_field(text: str | bytes, message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}"):
        load_settings({}, write(text))


@pytest.mark.parametrize("given", ["preempted=0, node_lost=7", ["preempted=0", "node_lost=7"]])
def test_retries_are_limited_by_cause(given: object, monkeypatch: pytest.MonkeyPatch) -> None:
    if isinstance(given, str):
        monkeypatch.setenv("KDRUN_RETRIES", given)
    retries = load_settings({} if isinstance(given, str) else {"retries": given}).retries
    assert (retries.preempted, retries.node_lost, retries.worker_lost) == (0, 7, 2)


def test_one_number_limits_the_retries_of_every_cause() -> None:
    assert set(load_settings({"retries": ("0",)}).retries.model_dump().values()) == {0}
    assert load_settings({}, write("retries: 3\n")).retries.node_lost == 3


def test_an_empty_file_says_nothing() -> None:
    assert load_settings({}, write("# nothing\n")).trials == 2


def test_a_file_that_is_not_there_is_told() -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml: cannot be read: No such file"):
        load_settings({}, Path("none.yaml"))


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("KDRUN_TRIALS", "x", "KDRUN_TRIALS: 'x': must be a whole number"),
        ("KDRUN_STORE", "gs://b", "KDRUN_STORE: 'gs://b': not a store; write s3://"),
        ("KDRUN_TRAILS", "3", "KDRUN_TRAILS: no such setting; is it trials?"),
        ("KDRUN_DEVICE", "cuda:1", "KDRUN_DEVICE: 'cuda:1': write cpu, auto, or the type of an"),
        ("KDRUN_LEVEL", "a,b", "KDRUN_LEVEL: 'a': must be a whole number"),
    ],
)
def test_a_broken_variable_is_told_by_its_name(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, message: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}"):
        load_settings({})


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"start": -1}, "--start -1: must be greater than or equal to 0"),
        ({"count": 0}, "--count 0: must be greater than or equal to 1"),
        ({"trials": 0}, "--trials 0: must be"),
        ({"workers": 0}, "--workers 0: must be"),
        ({"timeout": 0.0}, "--timeout 0.0: must be greater than 0"),
        ({"num_gpus": -1.0}, "--num-gpus -1.0: must be"),
        ({"memory": "much"}, "--memory 'much': must be a size, such as 16GiB"),
        ({"memory": "-1GiB"}, "--memory '-1GiB': must be a size, such as 16GiB"),
        ({"num_gpus": 1.5}, "--num-gpus 1.5: a part of one, or whole ones"),
        ({"num_cpus": 0.0}, "--num-cpus 0.0: must be greater than 0"),
        (
            {"retries": ("x=1",)},
            "--retries 'x=1': no cause is called 'x'; there are preempted, node_lost",
        ),
        ({"retries": ("node_lots=1",)}, "--retries 'node_lots=1': no cause is called 'node_lots'"),
        ({"retries": ("-1",)}, "--retries '-1': write CAUSE=N, or N for every cause; N is 0 or"),
        ({"retries": ("node_lost",)}, "--retries 'node_lost': write CAUSE=N, or N for every cause"),
        ({"retries": ("node_lost=x",)}, "--retries 'node_lost=x': write CAUSE=N, or N for every"),
        ({"store": "s3:/b"}, "--store 's3:/b': not a store; is it s3://b?"),
        ({"store": "S3://b/p"}, "--store 'S3://b/p': not a store; is it s3://b/p?"),
        ({"store": "s3:///b"}, "--store 's3:///b': not a store; is it s3://b?"),
        ({"store": "file:///x/y"}, "--store 'file:///x/y': not a store; is it /x/y?"),
        (
            {"store": "https://host:9000/b"},
            "--store 'https://host:9000/b': not a store; is it s3://b with KDRUN_S3_ENDPOINT_URL=h",
        ),
        ({"store": "gs://b"}, "--store 'gs://b': not a store; write s3://bucket/prefix, or a"),
        ({"store": ""}, "--store '': not a store; write s3://bucket/prefix, or a folder"),
        ({"output": Path("/dev/null/x")}, "--output '/dev/null/x': /dev/null is a file; name"),
        ({"run_id": ".."}, "--run-id '..': it names a folder"),
    ],
    ids=str,
)
def test_a_broken_flag_is_told_by_its_name(flags: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(message)}"):
        load_settings(flags)


def test_a_folder_may_begin_with_the_home_as_no_shell_writes_it_in_a_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    settings = load_settings({}, write("store: ~/store\noutput: ~/out\ndata: ~/mine\n"))
    assert settings.store == "/home/me/store"
    assert (settings.output, settings.data) == (Path("/home/me/out"), Path("/home/me/mine"))
    assert load_settings({"store": "./a:b"}).store == str(Path.cwd() / "a:b")


def test_settings_errors_end_with_the_exit_code_of_wrong_usage() -> None:
    with pytest.raises(KdrunError) as caught:
        load_settings({"trials": 0})
    assert caught.value.exit_code == 2
