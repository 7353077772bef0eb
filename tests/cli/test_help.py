"""Help: commands under headings, whole summaries, examples that parse, options with defaults."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from commands import KDRUN

from runner.cli import cli
from runner.config import Settings


def commands(group: click.Group, *before: str) -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        yield " ".join([*before, name]), command
        if isinstance(command, click.Group):
            yield from commands(command, *before, name)


COMMANDS = dict(commands(cli))
OPTIONS = {
    f"{name} --{option.name}": option
    for name, command in COMMANDS.items()
    for option in command.get_params(click.Context(command))
    if isinstance(option, click.Option) and option.name != "help"
}


def shown(*arguments: str) -> str:
    done = CliRunner(env={"COLUMNS": "80"}).invoke(cli, arguments, prog_name="kdrun")
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout


def test_kdrun_alone_shows_its_help() -> None:
    assert shown() == shown("--help")
    assert shown("data") == shown("data", "--help")


def test_every_command_is_under_a_heading() -> None:
    listed = [command for section in cli.sections.values() for command in section]
    assert sorted(str(c.name) for c in listed) == sorted(cli.commands)
    assert all(f"\n{title}:\n" in shown() for title in cli.sections)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_summary_is_a_whole_sentence_on_one_line(name: str) -> None:
    summary = COMMANDS[name].get_short_help_str(limit=65)  # what a terminal of 80 columns has
    assert re.fullmatch(r"[A-Z].*[^.]\.", summary), summary
    *group, last = name.split()
    assert re.search(rf"^  {last} +{re.escape(summary)}$", shown(*group), re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_examples_that_parse(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = re.findall(r"^  (kdrun .*)$", COMMANDS[name].epilog or "", re.MULTILINE)
    assert lines
    assert all(f"\n    {line}\n" in shown(*name.split(), "--help") for line in lines)
    for line in lines:
        _, *arguments = shlex.split(line.partition(" >")[0])
        for argument in arguments:
            if "/" in argument and "://" not in argument:  # directories that must exist
                Path(argument).mkdir(parents=True, exist_ok=True)
        assert arguments[: len(name.split())] == name.split()
        context: click.Context | None = None
        command: click.Command = cli
        while isinstance(command, click.Group):
            command = command.commands[(arguments := [*arguments]).pop(0)]
        command.make_context(command.name, arguments, parent=context)


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_has_a_help_that_says_its_default(option: str) -> None:
    said = OPTIONS[option].help or ""
    assert re.fullmatch(r"[A-Z].*\.", said), said
    if OPTIONS[option].is_flag:
        return
    assert "default" in said
    field = Settings.model_fields.get(OPTIONS[option].name or "")
    if field is not None and isinstance(field.default, str | int | float):
        assert f"default {field.default}".removesuffix(".0") in said


def completed(*words: str, cwd: Path) -> list[str]:
    """Return what the shell completes the last of these words to."""
    asked = {"COMP_WORDS": shlex.join(words), "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run(
        [KDRUN],
        env={**asked, "_KDRUN_COMPLETE": "bash_complete", "PATH": ""},
        cwd=cwd,
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    return [line.removeprefix("plain,") for line in done.stdout.splitlines() if line]


def test_names_of_problems_and_runs_are_completed(tmp_path: Path) -> None:
    assert completed("kdrun", "dec", cwd=tmp_path) == ["decompose"]
    files, *names = completed("kdrun", "decompose", "simple", cwd=tmp_path)
    assert (files, names) == ("file,", ["simple_transformer"])
    assert "samples/vit_block" in completed("kdrun", "prompt", "samples/V", cwd=tmp_path)
    assert "vit_block" in completed("kdrun", "submit", "--problem", "vit", cwd=tmp_path)
    manifest = tmp_path / "there/runs/nightly/manifest.json"
    manifest.parent.mkdir(parents=True)
    manifest.touch()
    assert completed("kdrun", "logs", "--output", "there", "n", cwd=tmp_path) == ["nightly"]
    assert completed("kdrun", "logs", "--config", "none.yaml", "n", cwd=tmp_path) == []


def test_completion_does_not_load_torch() -> None:
    code = (
        "import sys, click\n"
        "from runner.cli.completion import problem_names, run_names\n"
        "context = click.Context(click.Command('x'))\n"
        "problem_names(context, None, ''), run_names(context, None, '')\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr
