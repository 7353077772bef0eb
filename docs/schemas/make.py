"""Writes the JSON schemas of kdrun's documents anew, from the models that write and read them.

make schemas
"""

import ast
import inspect
import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from runner.store.evaluation import Evaluation
from runner.store.manifest import Manifest
from runner.store.result import ProblemResult
from runner.tree.document import Tree

HERE = Path(__file__).parent
DOCUMENTS: dict[str, type[BaseModel]] = {
    "decomposition_tree": Tree,
    "result": ProblemResult,
    "manifest": Manifest,
    "evaluation": Evaluation,
}
PACKAGES = ("runner.problems.", "runner.store.", "runner.tree.")


def schema(name: str) -> str:
    """The text of a document's schema, with the sentences that stand in the code."""
    model = DOCUMENTS[name]
    document = model.model_json_schema(by_alias=True)
    classes = {cls.__name__: cls for cls in _below(BaseModel)}
    _describe(document, model)
    for class_name, part in document["$defs"].items():
        if class_name in classes:  # enums describe themselves
            _describe(part, classes[class_name])
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps(head | document | {"title": f"{name}.json"}, indent=1) + "\n"


def _below(cls: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """The models of the packages that documents are made of."""
    for subclass in cls.__subclasses__():
        if subclass.__module__.startswith(PACKAGES):
            yield subclass
        yield from _below(subclass)


def _describe(schema: dict[str, Any], cls: type[BaseModel]) -> None:
    """Put the docstring of a class, and those under its fields, in the place of titles."""
    schema["description"] = inspect.cleandoc(cls.__doc__ or "").partition("\n\n")[0]
    for field in schema["properties"].values():
        field.pop("title", None)
    for owner in cls.__mro__:
        if not owner.__module__.startswith(PACKAGES):
            continue
        (code,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
        assert isinstance(code, ast.ClassDef)
        for field, after in zip(code.body, code.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(after, ast.Expr):
                name = ast.unparse(field.target)
                text = inspect.cleandoc(ast.literal_eval(after.value))
                place = schema["properties"][cls.model_fields[name].alias or name]
                place.setdefault("description", " ".join(text.split()))


if __name__ == "__main__":
    for name in DOCUMENTS:
        (HERE / f"{name}.schema.json").write_text(schema(name), encoding="utf-8")
