"""Trees of schema version 1: shown by the commands that show, refused by those that judge."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from runner.cli import cli
from runner.tree.document import TREE_FILE, Tree
from runner.tree.version_1 import read_any_version

NAMED = ("input_shapes", "input_dtypes", "input_strides", "output_shapes", "output_dtypes")
NEW = (
    "operation", "attributes", "identity", "family", "groups", "output_strides", "weight_dtypes",
)  # fmt: skip


def ran(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, list(map(str, arguments)), standalone_mode=False)


@pytest.fixture
def old(output: Path) -> Path:
    """A decomposition whose tree is as version 1 had it: tensors in lists, and less said."""
    file = output / "level2/linear_gelu" / TREE_FILE
    tree = json.loads(file.read_text())
    tree["metadata"]["schema_version"] = 1
    for node in tree["nodes"].values():
        node.update({field: list(node[field].values()) for field in NAMED})
        for field in NEW:
            del node[field]
    file.write_text(json.dumps(tree))
    return file.parent


def test_it_is_read_with_numbers_for_names_and_nothing_made_up(old: Path, made: Path) -> None:
    before = Tree.read(made / "level2/linear_gelu")
    after = read_any_version(old)
    assert after.metadata == before.metadata
    for name, node in after.nodes.items():
        assert list(node.input_shapes.values()) == list(before.nodes[name].input_shapes.values())
        assert node.operation == before.nodes[name].operation
        assert (node.identity, node.family, node.attributes, node.groups) == (None, None, {}, [])
        assert list(node.output_dtypes) == ["output"]


def test_it_is_shown_compared_reported_and_listed(old: Path, made: Path, tmp_path: Path) -> None:
    assert "gelu" in ran("show", old).output
    assert ran("diff", old, made / "level2/linear_gelu").return_value == 0
    assert ran("report", old, "--to", tmp_path / "page.html").return_value == 0
    listed = json.loads(ran("workloads", old, "--json").stdout)
    assert [row["operation"] for row in listed["workloads"]] == ["linear", "gelu"]
    assert "identifies no workloads" in listed["notes"][0]


def test_it_is_verified_never_and_refused_in_one_line(old: Path) -> None:
    error = ran("verify", old).exception
    assert getattr(error, "exit_code", None) == 2
    assert str(error) == (
        f"{old / TREE_FILE}: schema version 1, this kdrun reads version 2; "
        "decompose the problem again with this version of kdrun"
    )


def test_a_version_that_is_yet_to_come_is_refused_everywhere(old: Path) -> None:
    file = old / TREE_FILE
    file.write_text(file.read_text().replace('"schema_version": 1', '"schema_version": 3'))
    for command in (("show", old), ("diff", old, old), ("workloads", old), ("verify", old)):
        assert "schema version 3, this kdrun reads version 2" in str(ran(*command).exception)
