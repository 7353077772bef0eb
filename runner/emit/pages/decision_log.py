"""Writes `decomposition_log.json`: the reasons for the level and the name of each part."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from runner.emit.component import Emitter
from runner.tree.document import Tree
from runner.tree.part import Part


def write_log(emitter: Emitter, root: Part, tree: Tree) -> str:
    """Return the text of `decomposition_log.json`, which docs/formats.md describes."""
    graph = emitter.program.graph
    instances = dict(zip(tree.nodes, _top_down(root), strict=True))
    levels: dict[tuple[str, str], list[str]] = {}
    names: dict[str, dict[str, None]] = {}
    kernels: dict[str, list[str]] = {}
    for identity, part in instances.items():
        workload = emitter.workload(part)
        levels.setdefault((part.level, part.reason), []).append(identity)
        names.setdefault(workload.naming, {})[workload.name] = None
        if not part.children:
            kernels[workload.name] = [graph.operations[i].target for i in part.operations]
    document: dict[str, object] = {
        "capture": graph.capture,
        "notes": list(graph.notes),
        "specialisations": list(graph.specialisations),
        "dropped": [
            {
                "operation": op.name,
                "p": op.arg("p"),
                "module": op.scopes[-1].path if op.scopes else "",
                "source_line": op.origin.line if op.origin is not None else None,
            }
            for op in graph.inactive_dropouts
        ],
        "levels": [
            {"level": level, "why": reason, "nodes": nodes}
            for (level, reason), nodes in levels.items()
        ],
        "names": [
            {"why": reason, "components": list(components)} for reason, components in names.items()
        ],
        "kernels": [
            {"component": name, "operations": operations} for name, operations in kernels.items()
        ],
    }
    return "{\n" + ",\n".join(_json_fields(document)) + "\n}\n"


def _json_fields(document: Mapping[str, object]) -> Iterator[str]:
    """Yield the fields as JSON, with each entry of a list on a line of its own."""
    for field, value in document.items():
        if isinstance(value, list) and value:
            entries = ",\n  ".join(json.dumps(entry, ensure_ascii=False) for entry in value)
            yield f" {json.dumps(field)}: [\n  {entries}\n ]"
        else:
            yield f" {json.dumps(field)}: {json.dumps(value)}"


def _top_down(root: Part) -> Iterator[Part]:
    """Yield parts level by level, in the order of the tree document's nodes."""
    queue = [root]
    for part in queue:
        yield part
        queue += part.children
