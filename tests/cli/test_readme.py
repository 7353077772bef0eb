"""What README says: its commands exist, its output is real, its links lead somewhere."""

import os
import re
import shlex
import shutil
import subprocess
import time
from pathlib import Path

import click
import pytest
import yaml
from commands import KDRUN
from object_server import BUCKET, Server
from stored_runs import environment
from whole_problem import WHOLE

from runner import cli

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
FENCED = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)
BLOCKS = FENCED.findall(README)
GUIDES = ("docs/clusters.md", "docs/kubernetes.md")
COMMANDS = [
    line.removeprefix("$ ").partition("  #")[0].strip()
    for text in (README, *((ROOT / guide).read_text() for guide in GUIDES))
    for _, block in FENCED.findall(text)
    for line in block.splitlines()
    if line.removeprefix("$ ").startswith(("kdrun ", "make "))
]
ELSEWHERE = {
    "make ": "CI begins with `make setup`, and ends with `make test`",
    "source ": "the tests run in the environment",
    "uv ": "it installs several GiB; test_wheel.py runs what it installs",
    "docker |mkdir ": "tests/container builds the image and runs it",
    "kubectl ": "tests/kubernetes builds what it would apply",
    "(export RAY|ray job) ": "tests/batch/test_on_cluster.py sends runs to a Ray",
    ".* --device cuda": "it needs a GPU",
    "python benchmarks/gpu.py": "it needs a GPU; test_gpu_benchmark.py runs it on the CPU",
    "kdrun report monday": "the runs have names of their own; test_comparison.py compares two",
    ".* timm": "the package is not installed",
    "kdrun submit --level 1 --fit": "it takes minutes; test_batch_fit.py chooses batches",
    "kdrun evaluate .* --write": "it compiles for a minute; tests/evaluate writes such files",
    "kdrun workloads output --measure": "it takes a while; test_measure.py measures",
}
"""Beginnings of commands that this test does not run, and why."""
SAMPLES = [
    f"data/samples/{sample}.py"
    for sample in ("level1/leaky_relu", "level2/conv_bn_relu", "level3/vit_block")
]
"""Samples that its commands name."""
ZOO = """import torch


def llama():
    return torch.nn.Linear(4, 4), [torch.randn(2, 4)]
"""


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_one(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, *arguments = shlex.split(command)
    if program == "make":
        assert re.search(rf"^{arguments[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
        return
    monkeypatch.chdir(tmp_path)
    for argument in arguments:  # files that it names must exist for the parser
        if argument.endswith(".py"):
            Path(argument).parent.mkdir(parents=True, exist_ok=True)
            Path(argument).touch()
        elif "/" in argument:
            Path(argument).mkdir(parents=True)
    context: click.Context | None = None
    found: click.Command = cli.cli
    while isinstance(found, click.Group):
        context = found.make_context(program, arguments, parent=context)
        name, subcommand, arguments = found.resolve_command(
            context, [*context._protected_args, *context.args]
        )
        assert subcommand is not None, name
        found = subcommand
    found.make_context(found.name, arguments, parent=context)


@pytest.mark.long
def test_its_commands_work_in_the_order_in_which_they_stand(
    tmp_path: Path, server: Server, request: pytest.FixtureRequest
) -> None:
    """A newcomer copies them one after the other, with files of their own where it says "my".

    The first run with work to do starts a Ray of its own. The later ones, to save time, share one.
    """
    joins: dict[str, str] = {}
    for sample in SAMPLES:
        (tmp_path / sample).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / sample, tmp_path / sample)
    write(tmp_path, "mine", folder="my_models")
    (tmp_path / "my_package").mkdir()
    (tmp_path / "COMMAND").touch(mode=0o755)
    (tmp_path / "my_package/zoo.py").write_text(ZOO)
    not_met = set(ELSEWHERE)
    for language, block in BLOCKS:
        if language == "python":
            (tmp_path / "my_model.py").write_text(block)
        elif language == "console":
            command, _, expected = block.partition("\n")
            done = run(command.removeprefix("$ "), tmp_path, server)
            assert without_measurements(done.stdout) == without_measurements(expected)
        else:
            for command in block.replace("\\\n", " ").splitlines():
                if reason := next((e for e in ELSEWHERE if re.match(e, command)), None):
                    not_met.discard(reason)
                elif command.startswith("kdrun data fetch"):
                    write(tmp_path, "1_Stand_in", folder="data/kernelbench/level2")
                    write(tmp_path, "9_ResNet18", folder="data/kernelbench/level3")
                else:
                    # The workers of a shared Ray do not find a package in this folder.
                    run(command, tmp_path, server, **({} if "my_package" in command else joins))
                    if command.startswith("kdrun submit --data my_models") and not joins:
                        joins["KDRUN_ADDRESS"] = request.getfixturevalue("ray_address")
                        joins["RAY_AUTH_MODE"] = "disabled"
    assert joins
    assert not not_met


def write(root: Path, name: str, folder: str) -> None:
    path = root / folder / f"{name}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(WHOLE)


def run(
    command: str, folder: Path, server: Server, **changes: str
) -> subprocess.CompletedProcess[str]:
    """Run a line of README in a shell that finds kdrun, with the bucket of this server."""
    began = time.monotonic()
    path = os.pathsep.join((str(Path(KDRUN).parent), os.environ["PATH"], str(folder)))
    done = subprocess.run(
        ["bash", "-euc", command.replace("s3://results/kdrun", f"s3://{BUCKET}/{folder.name}")],
        cwd=folder,
        env=environment(server, PATH=path, KDRUN_MEMORY="5GiB", **changes),
        capture_output=True,
        text=True,
        timeout=300,
    )
    print(f"{time.monotonic() - began:.1f} s  {command}")
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


def without_measurements(text: str) -> str:
    return re.sub(r"[\d.]+ (s|GiB)\b", r"N \1", text)


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", FENCED.sub("", page.read_text(encoding="utf-8"))):
        file, _, heading = target.partition("#")
        if not target.startswith("https://"):
            place = page.parent / file if file else page
            assert place.exists(), target
            text = place.read_text(encoding="utf-8") if place.suffix == ".md" else ""
            assert heading in {*map(anchor, re.findall(r"^#+ (.*)", text, re.MULTILINE)), ""}


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_files_and_functions_that_a_page_names_are_there(page: str) -> None:
    """A function stands behind its file: `graph/normalize.py`: `normalize()`."""
    text = FENCED.sub("", (ROOT / page).read_text(encoding="utf-8"))
    files = set(re.findall(r"`([\w/]+/\w+\.py)`", text))
    assert [
        file for file in files if not any((ROOT / f / file).is_file() for f in ("runner", ""))
    ] == []
    for file, function in re.findall(r"`([\w/]+\.py)`: `(\w+)\(\)`", text):
        assert f"def {function}(" in (ROOT / "runner" / file).read_text(encoding="utf-8"), file


def anchor(heading: str) -> str:
    """The last part of a link to a heading, as GitHub makes it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def test_the_number_of_samples_is_right() -> None:
    said = re.search(r"takes the (\d+) samples apart", README)
    assert said is not None
    assert int(said[1]) == len(list((ROOT / "data/samples").glob("level[123]/*.py")))


def test_every_command_is_in_the_table() -> None:
    listed = set(re.findall(r"^\| `kdrun ([a-z0-9 ]+?)(?: \[?[A-Z].*?)?` \|", README, re.MULTILINE))
    groups = {n: c for n, c in cli.cli.commands.items() if isinstance(c, click.Group)}
    commands = set(cli.cli.commands) - set(groups)
    assert listed == commands | {f"{n} {name}" for n, c in groups.items() for name in c.commands}


def test_the_settings_that_it_names_exist() -> None:
    settings = yaml.safe_load((ROOT / "configs/default.yaml").read_text())
    for name in re.findall(r"\bKDRUN_([A-Z0-9_]+)", README):
        assert name.lower() in settings
