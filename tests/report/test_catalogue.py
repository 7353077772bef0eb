"""Every unique kernel workload over all models."""

import json
import shutil
from pathlib import Path

import pyarrow.parquet
import pytest
from click.testing import CliRunner, Result
from sample_run import RUN, TAKEN_APART

from runner.cli import cli
from runner.report.catalogue import Catalogue, collect_workloads, curve, sort_catalogue, source_of
from runner.report.subject import find_subject
from runner.tree.document import Tree


def ran(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["workloads", *map(str, arguments)], standalone_mode=False)


@pytest.fixture(scope="module")
def catalogue(made: Path) -> Catalogue:
    return collect_workloads(find_subject(RUN, made))


def test_it_adds_up_to_what_the_trees_say(catalogue: Catalogue, made: Path) -> None:
    trees = [Tree.read(made / label) for label in TAKEN_APART]
    kernels = [n for tree in trees for n in tree.nodes.values() if n.level == "kernel"]
    assert catalogue.instances == len(kernels)
    assert catalogue.flops == sum(node.flops for node in kernels)
    assert catalogue.bytes == sum(node.bytes for node in kernels)
    assert sum(family.workloads for family in catalogue.families) == len(catalogue.workloads)


def test_it_is_printed_in_one_line(catalogue: Catalogue) -> None:
    count = len(catalogue.workloads)
    models = len(TAKEN_APART)
    assert str(catalogue) == f"<{count} kernels in {models} models of {RUN}: .workloads lists them>"


def test_the_largest_share_comes_first_and_shares_are_a_whole(catalogue: Catalogue) -> None:
    shares = [row.share for row in catalogue.workloads]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1)
    assert catalogue.workloads[-1].cumulative == pytest.approx(1)


def test_names_are_unique_and_each_leads_to_its_file(catalogue: Catalogue, made: Path) -> None:
    names = [row.name for row in catalogue.workloads]
    assert len(set(names)) == len(names)
    subject = find_subject(RUN, made)
    assert all(source_of(row, subject).is_file() for row in catalogue.workloads)


def test_one_kernel_in_two_models_is_one_workload(output: Path) -> None:
    shutil.copytree(output / "level3/mlp", output / "level3/the_same_again")
    alone = collect_workloads(find_subject(str(output / "level3/mlp"), output))
    both = collect_workloads(find_subject(str(output), output))
    again = {row.id: row for row in both.workloads}
    for row in alone.workloads:
        assert again[row.id].instances == 2 * row.instances
        used_by = [use.problem for use in again[row.id].uses]
        assert used_by == ["level3/mlp", "level3/the_same_again"]


def test_it_can_be_sorted_by_bytes(catalogue: Catalogue) -> None:
    by_bytes = sort_catalogue(catalogue, "bytes")
    assert by_bytes.by == "bytes"
    first = by_bytes.workloads[0]
    assert first.share == pytest.approx(first.bytes * first.instances / catalogue.bytes)


def test_the_curve_says_how_few_are_how_much() -> None:
    points = curve([0.6, 0.85, 0.95, 1.0])
    assert [(p.share, p.workloads) for p in points] == [
        (0.5, 1), (0.8, 2), (0.9, 3), (0.95, 3), (0.99, 4), (1.0, 4),
    ]  # fmt: skip
    assert curve([]) == []


def test_the_table_ends_with_the_curve(made: Path) -> None:
    done = ran(RUN, "--output", made, "--first", 2)
    assert done.exception is None
    assert "unique workloads in" in done.output
    assert "of the FLOPs, the first 1 are 50%" in " ".join(done.output.split())


def test_families_have_a_table_of_their_own(made: Path) -> None:
    assert "linear on 2-d float32 with 2 weights" in ran(RUN, "--output", made, "--families").output


def test_a_run_without_a_decomposition_says_so(tmp_path: Path) -> None:
    problem = tmp_path / "broken.py"
    problem.write_text("import torch\n")
    CliRunner().invoke(cli, ["decompose", str(problem), "--output", str(tmp_path / "output")])
    for flags in ([], ["--families"]):
        done = ran(tmp_path / "output", *flags)
        assert "no problem there has a decomposition" in done.output
        assert "workload" not in done.output


def test_json_and_parquet_hold_every_workload(made: Path, tmp_path: Path) -> None:
    done = ran(RUN, "--output", made, "--json", "--parquet", tmp_path / "w.parquet")
    document = Catalogue.model_validate(_without_computed(json.loads(done.stdout)))
    table = pyarrow.parquet.read_table(tmp_path / "w.parquet").to_pylist()
    assert [row["name"] for row in table] == [row.name for row in document.workloads]
    assert table[0]["intensity"] == document.workloads[0].intensity
    assert table[0]["uses"][0]["problem"] in TAKEN_APART


def _without_computed(document: dict[str, list[dict[str, object]]]) -> object:
    for row in document["workloads"]:
        del row["intensity"]
    return document


def test_operations_and_a_number_can_be_chosen(made: Path) -> None:
    done = ran(RUN, "--output", made, "--operation", "softmax", "--first", 1, "--json")
    (row,) = json.loads(done.stdout)["workloads"]
    assert row["operation"] == "softmax"


def test_a_kernel_file_that_is_lost_is_said(output: Path) -> None:
    next((output / "level3/mlp/level_0_kernel").glob("*.py")).unlink()
    notes = collect_workloads(find_subject(RUN, output)).notes
    assert any("level3/mlp: 1 kernel file lost" in note for note in notes)


def test_a_parquet_file_that_cannot_be_written_is_one_line(made: Path, tmp_path: Path) -> None:
    done = ran(RUN, "--output", made, "--parquet", tmp_path / "no" / "such" / "w.parquet")
    assert "No such file" in str(done.exception)
