"""What README says: its commands exist, its output is real, its links lead somewhere."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import click
import pytest
import yaml
from commands import KDRUN

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
SESSIONS = [block for language, block in BLOCKS if language == "console"]


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


def test_a_session_shows_what_really_comes_out(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "data/samples/level3", tmp_path / "data/samples/level3")
    for session in SESSIONS:
        command, _, expected = session.partition("\n")
        done = subprocess.run(
            [KDRUN, *shlex.split(command)[2:]], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert without_measurements(done.stdout) == without_measurements(expected)


def without_measurements(text: str) -> str:
    """A busy machine leaves less time to examine what has an effect, and says so."""
    text = re.sub(r"(?m)^ *not examined: .*\n", "", text)
    return re.sub(r"[\d.]+ (s|GiB)\b", r"N \1", text)


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", README):
        if not target.startswith("https://"):
            assert (ROOT / target).is_file(), target


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
    for name in re.findall(r"KDRUN_([A-Z0-9_]+)", README):
        assert name.lower() in settings
