"""A census counts kernels by the packages and families of the models that hold them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from runner.cli import cli
from runner.report.catalogue import collect_workloads
from runner.report.census import Census, read_census, take_census
from runner.report.subject import find_subject

ORIGIN = '# zoo: {"package":"timm","family":"tiny","model":"%s","version":"1.0"}\n'


@pytest.fixture
def zoo_output(output: Path) -> Path:
    """The shared run, two of whose problems say that they are models of a zoo."""
    for directory in sorted(path.parent for path in output.glob("*/*/original.py"))[:2]:
        with (directory / "original.py").open("a", encoding="utf-8") as file:
            file.write("\n" + ORIGIN % directory.name)
    return output


def census_of(output: Path, earlier: Census | None = None) -> Census:
    subject = find_subject(str(output), output)
    return take_census(collect_workloads(subject), subject, earlier)


def test_models_are_counted_by_package_and_family(zoo_output: Path) -> None:
    census = census_of(zoo_output)
    timm = next(part for part in census.packages if part.name == "timm")
    assert (timm.models, timm.families, timm.version) == (2, 1, "1.0")
    assert "timm/tiny" in [part.name for part in census.families]
    assert sum(part.flops_share for part in census.packages) == pytest.approx(1)
    assert sum(part.bytes_share for part in census.operations) == pytest.approx(1)
    assert sum(row.instances for row in census.rows) == census.instances
    assert census.groups <= census.workloads
    assert census.flops_curve[-1].share == 1


def test_another_census_says_what_is_new(zoo_output: Path, tmp_path: Path) -> None:
    before = census_of(zoo_output)
    fewer = before.model_copy(update={"rows": before.rows[1:]})
    file = tmp_path / "before.json"
    file.write_text(fewer.to_json(), encoding="utf-8")
    after = census_of(zoo_output, read_census(file))
    assert after.against is not None
    assert (after.against.new, after.against.gone) == (1, 0)
    assert [row.new for row in after.rows][:2] == [True, False]


def test_the_command_prints_a_census_and_writes_it(zoo_output: Path, tmp_path: Path) -> None:
    def run(*arguments: str) -> str:
        command = ["workloads", str(zoo_output), "--census", *arguments]
        return CliRunner().invoke(cli, command, standalone_mode=False).stdout

    assert "unique workloads in" in run()
    document = json.loads(run("--json"))
    assert document["workloads"] == len(document["rows"])
    parquet = pytest.importorskip("pyarrow.parquet")
    run("--parquet", str(tmp_path / "census.parquet"))
    assert len(parquet.read_table(tmp_path / "census.parquet")) == document["workloads"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--against", "x.json"], "--against compares a census; give --census too"),
        (["--census", "--measure"], "--measure: a census counts all kernels"),
        (["--census", "--against", "broken.json"], "broken.json: no census"),
    ],
)
def test_a_mistake_of_a_census_is_one_line(
    arguments: list[str], message: str, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["workloads", str(made), *arguments], standalone_mode=False)
    assert message in str(result.exception)
