"""The JSON schemas under docs/schemas are those of the documents that kdrun writes."""

import json
import runpy
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from sample_run import RUN, TAKEN_APART

SCHEMAS = Path(__file__).parents[2] / "docs/schemas"
MAKE = runpy.run_path(str(SCHEMAS / "make.py"))
FORMATS = (SCHEMAS.parent / "formats.md").read_text()


def section(name: str) -> str:
    """What the page says of a document."""
    return FORMATS.partition(f"\n## {name}.json\n")[2].partition("\n## ")[0]


def schema_of(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    return document


@pytest.mark.parametrize("name", MAKE["DOCUMENTS"])
def test_each_schema_is_that_of_the_model(name: str) -> None:
    assert (SCHEMAS / f"{name}.schema.json").read_text() == MAKE["schema"](name), "make schemas"


def test_there_are_no_other_schemas() -> None:
    names = {path.name.removesuffix(".schema.json") for path in SCHEMAS.glob("*.json")}
    assert names == set(MAKE["DOCUMENTS"])


@pytest.mark.parametrize("label", TAKEN_APART)
def test_trees_and_results_are_as_the_schemas_have_them(made: Path, label: str) -> None:
    for name in ("decomposition_tree", "result"):
        document = json.loads((made / label / f"{name}.json").read_text())
        jsonschema.Draft202012Validator(schema_of(name)).validate(document)


def test_a_manifest_is_as_its_schema_has_it(made: Path) -> None:
    (file,) = made.rglob(f"{RUN}/manifest.json")
    jsonschema.Draft202012Validator(schema_of("manifest")).validate(json.loads(file.read_text()))


def test_a_tree_with_an_unknown_field_or_a_list_of_shapes_is_not(made: Path) -> None:
    document = json.loads((made / "level1/softmax/decomposition_tree.json").read_text())
    validator = jsonschema.Draft202012Validator(schema_of("decomposition_tree"))
    assert validator.is_valid(document)
    root = document["nodes"]["root"]
    for change in ({"colour": "red"}, {"input_shapes": [[4, 4]]}, {"level": "block"}):
        document["nodes"]["root"] = root | change
        assert not validator.is_valid(document)


@pytest.mark.parametrize("name", MAKE["DOCUMENTS"])
def test_the_page_explains_every_field(name: str) -> None:
    explained = section(name)
    if name == "manifest":  # a row holds parts of a result
        explained += section("result")
    schema = schema_of(name)
    fields = {f for part in (schema, *schema["$defs"].values()) for f in part.get("properties", ())}
    assert {field for field in fields if f"`{field}`" not in explained} == set()


def test_the_example_of_the_page_is_a_node_of_a_sample(made: Path) -> None:
    example = json.loads(FORMATS.partition("```json\n")[2].partition("```")[0])
    document = json.loads((made / "level2/linear_gelu/decomposition_tree.json").read_text())
    assert document["nodes"][example["id"]] == example
