"""Rules 1, 2 and 3, and that what runs is what the tree records: from what was seen to run."""

from __future__ import annotations

import filecmp
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from checker.counting import CONTRACTIONS, Counted, Event, Spec, counted
from checker.directory import Directory
from checker.findings import Finding
from checker.running import Ran
from checker.structure import ATTENTIONS, COMPOUND, is_whole_model, operation_of

COMPOSITION = "verification/composition_test.py"
WITH_A_CONTRACTION = {"move", "add", "mul", "zeros", "sum"}
"""What one contraction dispatches besides itself: its bias, its layout."""
PICKS = {"index", "index_select", "embedding"}
"""How the weights of the chosen experts are gathered."""
PROBABILITIES = {"_softmax", "_safe_softmax", "exp", "relu", "clamp_min", "sigmoid"}
IN_ATTENTION = PROBABILITIES | {
    "sub", "rsub", "div", "tanh", "masked_fill", "where", "cat", "amax", "max", "maximum", "pow",
    "clamp", "index_select", "repeat", "native_dropout", "bernoulli", "fill",
}  # fmt: skip
"""What scales, masks, caps and casts scores, and what repeats keys and values."""


@dataclass(frozen=True)
class Seen:
    """Everything that ran."""

    original: Ran
    components: dict[str, Ran]
    steps: dict[str, Ran]
    composition: Ran


# --- 1: exact -------------------------------------------------------------------------------------


def exact(directory: Directory, seen: Seen) -> Iterator[Finding]:
    root = directory.nodes["root"]
    original = seen.original
    for file, ran in seen.components.items():
        for node in directory.used.get(file, []):
            yield from _as_the_tree_says(node, ran)
        if ran.promised != tuple(s.shape for s in ran.outputs):
            yield Finding(1, file, f"promises {list(ran.promised)}, gives {_shown(ran.outputs)}")
    ends = seen.components.get(root["path"])
    if ends is not None and ends.inputs != original.inputs:
        yield Finding(
            1, root["path"], f"runs on {_shown(ends.inputs)}, not {_shown(original.inputs)}"
        )
    if seen.composition.outputs != original.outputs:
        given = _shown(seen.composition.outputs)
        yield Finding(1, COMPOSITION, f"gives {given}, not {_shown(original.outputs)}")
    for where, ran in {COMPOSITION: seen.composition, **seen.steps}.items():
        for call in ran.calls:
            file = next((f for f in seen.components if f.endswith(f"/{call.file}")), "")
            if not file:
                yield Finding(6, where, f"calls {call.file}, which is no component")
            elif call.inputs != seen.components[file].inputs:
                yield Finding(1, file, f"runs on {_shown(seen.components[file].inputs)}, but"
                              f" {where} calls it with {_shown(call.inputs)}")  # fmt: skip
    yield from _weights(directory, seen)


def _as_the_tree_says(node: dict[str, Any], ran: Ran) -> Iterator[Finding]:
    said = _specs(*(node[f"input_{what}"].values() for what in ("shapes", "dtypes", "strides")))
    if said != ran.inputs:
        yield Finding(
            1, node["id"], f"the tree says {_shown(said)}, its file draws {_shown(ran.inputs)}"
        )
    outputs = _specs(*(node[f"output_{what}"].values() for what in ("shapes", "dtypes", "strides")))
    if outputs != ran.outputs:
        yield Finding(
            1, node["id"], f"the tree says {_shown(outputs)}, its file gives {_shown(ran.outputs)}"
        )
    for name, shape in node["weight_shapes"].items():
        said_weight = tuple(shape), node["weight_dtypes"][name]
        weight = ran.weights.get(name)
        if weight is not None and (weight.shape, weight.dtype) != said_weight:
            yield Finding(1, node["id"], f"{name} is {weight}, the tree says {said_weight}")


def _weights(directory: Directory, seen: Seen) -> Iterator[Finding]:
    """Every instance's weights are the original's, and every weight of the original is in one."""
    held: set[str] = set()
    theirs = seen.original.weights
    for node in directory.nodes.values():
        ran = seen.components.get(node["path"])
        if ran is None:
            continue
        for name, source in node["weight_map"].items():
            if source not in theirs or name not in ran.weights:
                yield Finding(1, node["id"], f"maps {name} to {source}: there is no such weight")
            elif ran.weights[name] != theirs[source]:
                yield Finding(1, node["id"], f"{name} is {ran.weights[name]}, not {theirs[source]}")
            if not node["children"]:
                held |= {source}
        mapped = node["weight_map"].keys()
        loose = {n for group in ran.shared if not group & mapped for n in group}
        for name in sorted(loose & ran.parameters):
            yield Finding(1, node["id"], f"{name} is mapped to no weight of the original")
    unused = set(directory.metadata["unused_weights"])
    for group in seen.original.shared:
        if group & seen.original.parameters and not group & held and not group <= unused:
            yield Finding(1, "original.py", f"{min(group)} is in no kernel")


# --- 2: all compute is in kernels -----------------------------------------------------------------


def all_compute_in_kernels(directory: Directory, seen: Seen) -> Iterator[Finding]:
    total: Counter[Counted] = Counter()
    unread: Counter[Counted] = Counter()
    for node in directory.kernels:
        if node["path"] in seen.components:
            total += counted(seen.components[node["path"]].events)
            unread += counted(seen.components[node["path"]].unused)
    yield from _same_compute("original.py", seen.original, total, "the kernels")
    for where, ran in (
        (COMPOSITION, seen.composition),
        *seen.steps.items(),
    ):
        for what in ran.outside:
            yield Finding(2, where, f"computes {what} itself")
    composed, alone = counted(seen.composition.events + seen.composition.unused), total + unread
    if composed != alone:
        one = next(iter((composed - alone) or (alone - composed)))
        yield Finding(2, COMPOSITION, f"and the kernels differ in {one}")
    done: set[str] = set()
    for node in directory.nodes.values():
        if node["children"] and node["path"] not in done and node["path"] in seen.components:
            done.add(node["path"])
            parts: Counter[Counted] = Counter()
            for child in node["children"]:
                path = directory.nodes[child]["path"] if child in directory.nodes else ""
                if path in seen.components:
                    parts += counted(seen.components[path].events)
            yield from _same_compute(
                node["path"], seen.components[node["path"]], parts, "its children"
            )


def _same_compute(where: str, whole: Ran, parts: Counter[Counted], who: str) -> Iterator[Finding]:
    wanted, optional = counted(whole.events), counted(whole.unused)
    # In place on a part: a program without writes puts the part back into the whole.
    optional += Counter(
        Counted("move", e.counted.outputs, (), e.counted.outputs)
        for e in (*whole.events, *whole.unused)
        if e.into_part and e.counted.name != "move"
    )
    for operation, count in (wanted - parts).items():
        yield Finding(2, where, f"{count} × {operation} missing in {who}")
    for operation, count in (parts - wanted - optional).items():
        yield Finding(2, where, f"{count} × {operation} too many in {who}")


# --- 3: one logical operation a kernel ------------------------------------------------------------


def one_operation(directory: Directory, seen: Seen) -> Iterator[Finding]:
    root = directory.nodes["root"]
    if len(seen.original.events) > 1 and is_whole_model(directory.metadata["source_level"], root):
        yield Finding(4, "root", "a whole model passed off as a kernel")
    if directory.metadata["source_level"] == "level1":
        return
    for node in directory.kernels:
        if len(node["operations"]) != 1:
            yield Finding(3, node["id"], f"a kernel of {node['operations']}")
        elif (
            not node["path"]
            .rpartition("/")[2]
            .startswith(
                # a name of more than 60 characters says attention
                (node["operations"][0] + "_", node["operations"][0].split("_product_")[-1] + "_")
            )
        ):
            yield Finding(3, node["path"], f"is not named after {node['operations'][0]}")
    for file, ran in seen.components.items():
        if file.startswith("level_0") and file != root["path"]:
            yield from _says_one_thing(file, ran)


def _says_one_thing(file: str, ran: Ran) -> Iterator[Finding]:
    operation = operation_of(file)
    if operation in COMPOUND:
        return
    for event in ran.unused:
        if not event.updates:
            yield Finding(3, file, f"computes {event.counted} for nobody")
    contractions = [e for e in ran.events if e.counted.name in CONTRACTIONS]
    if operation in ATTENTIONS:
        yield from _attends(file, ran.events)
    elif len(contractions) > 1:
        yield Finding(3, file, f"holds {len(contractions)} contractions")
    elif contractions:
        for event in ran.events:
            beside = event.on_inputs and event.counted.name not in CONTRACTIONS | WITH_A_CONTRACTION
            if beside and not (event.on_weights and event.counted.name in PICKS):
                yield Finding(3, file, f"does {event.counted} beside its contraction")
    if len(_pieces(ran.events)) > 1:
        yield Finding(3, file, "does two things that have nothing to do with each other")


def _attends(file: str, events: list[Event]) -> Iterator[Finding]:
    """Scores, probabilities of them, their product with values, and nothing of a weight's."""
    products = [n for n, e in enumerate(events) if e.counted.name in CONTRACTIONS]
    if not 1 <= len(products) <= 2:
        yield Finding(3, file, f"is an attention of {len(products)} contractions")
    for n in products:
        if events[n].on_weights:
            yield Finding(3, file, f"projects by {events[n].counted}")
    for event in events:
        name = event.counted.name
        if event.on_inputs and name not in CONTRACTIONS | WITH_A_CONTRACTION | IN_ATTENTION:
            yield Finding(3, file, f"does {event.counted} in an attention")
    if len(products) == 2 and not _probabilities(events, *products):
        yield Finding(3, file, "holds two contractions and no probabilities between them")


def _probabilities(events: list[Event], first: int, second: int) -> bool:
    """Whether the second product reads what a softmax or the like made of the first one's."""
    scores, weights = set(events[first].writes), set[int]()
    for event in events[first + 1 : second]:
        if event.reads & weights or (event.reads & scores and event.counted.name in PROBABILITIES):
            weights |= event.writes
        elif event.reads & scores:
            scores |= event.writes
    return bool(events[second].reads & weights)


def _pieces(events: list[Event]) -> list[set[int]]:
    """Groups of storages that operations join."""
    groups: list[set[int]] = []
    for event in events:
        touched = set(event.reads | event.writes)
        for group in [g for g in groups if g & touched]:
            touched |= group
            groups.remove(group)
        groups.append(touched)
    return groups


# --- 6: instances ---------------------------------------------------------------------------------


def instances(directory: Directory, seen: Seen) -> Iterator[Finding]:
    """What ran is what the tree records."""
    calls = Counter(call.file for call in seen.composition.calls)
    said = Counter(node["path"].rpartition("/")[2] for node in directory.kernels)
    for file in sorted(calls.keys() | said.keys()):
        if calls[file] != said[file]:
            yield Finding(6, file, f"runs {calls[file]} times, the tree has {said[file]} instances")
    parents = {p for p, nodes in directory.used.items() if nodes[0]["children"]}
    for folder, ran in seen.steps.items():
        parent = next((p for p in parents if _is_step_of(directory, folder, p)), None)
        if parent is None:
            yield Finding(6, folder, "its original.py is no component with children")
            continue
        parents.discard(parent)
        node = directory.used[parent][0]
        children = Counter(
            directory.nodes[c]["path"].rpartition("/")[2]
            for c in node["children"]
            if c in directory.nodes
        )
        if Counter(call.file for call in ran.calls) != children:
            yield Finding(6, folder, f"does not call the children that the tree gives {node['id']}")
    for parent in sorted(parents):
        yield Finding(6, parent, "has no step")


def _is_step_of(directory: Directory, folder: str, component: str) -> bool:
    original = directory.path / folder / "original.py"
    return original.is_file() and filecmp.cmp(original, directory.path / component, shallow=False)


def _specs(shapes: Any, dtypes: Any, strides: Any) -> tuple[Spec, ...]:
    return tuple(Spec.like(*each) for each in zip(shapes, dtypes, strides, strict=True))


def _shown(specs: tuple[Spec, ...]) -> str:
    return ", ".join(f"{s} strides {list(s.strides)}" for s in specs) or "nothing"
