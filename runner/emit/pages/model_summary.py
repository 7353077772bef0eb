"""Describe a model in one paragraph, from what its kernels and layers show and nothing else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import prod

from runner.emit.pages.outline import title
from runner.graph.ir import Graph, Operation, Ref, TensorSpec
from runner.graph.operations import kind
from runner.quantities import pluralize
from runner.tree.default_arguments import defaults
from runner.tree.document import Node, Tree
from runner.tree.interface import Program
from runner.tree.part import Part
from runner.tree.workload_words import known_by

_MOST_OPERATIONS = 7
_MOST_CLASSES = 3
_MOST_WIDTHS = 8
_WINDOW = re.compile(r"window(\d+)")
_RECURRENT = {"lstm": "an LSTM", "gru": "a GRU", "rnn_tanh": "an RNN", "rnn_relu": "an RNN"}
_REPEATS = {"repeat_interleave", "repeat", "expand", "reshape", "clone", "contiguous"}
_NORMS_AND_SHAPES = {"normalization", "pointwise", "view", "copy"}


@dataclass(frozen=True)
class _Model:
    """What the paragraph is made from."""

    tree: Tree
    program: Program
    parts: tuple[Part, ...]
    """Kernel instances, in the order in which they run."""

    @property
    def graph(self) -> Graph:
        return self.program.graph

    def named(self, *endings: str) -> list[Part]:
        """Kernels whose operation ends so."""
        return [part for part in self.parts if part.stem.endswith(endings)]

    def operations(self, *names: str) -> list[Operation]:
        """Operations of the graph with one of these names."""
        return [op for op in self.graph.operations if op.name in names]

    def spec(self, op: Operation, argument: str) -> TensorSpec | None:
        """The tensor that an operation takes as an argument."""
        value = op.arg(argument)
        return self.graph.values[value.name] if isinstance(value, Ref) else None


def portrait(tree: Tree, program: Program, root: Part) -> str:
    """Return the paragraph: what it is, what it is made of, how many of which operation it runs."""
    model = _Model(tree, program, tuple(root.kernels()))
    first = _what_it_is(model)
    clauses = [clause for tell in _CLAUSES for clause in tell(model)]
    sentences = [f"{first}: {'; '.join(clauses)}." if clauses else f"{first}."]
    if len(model.parts) > 1:
        sentences.append(f"Kernels: {_listed([part.stem for part in model.parts])}.")
    return " ".join(sentences)


# --- the noun -------------------------------------------------------------------------------------


def _what_it_is(model: _Model) -> str:
    root, dtype = model.tree.root, _dtypes(model.graph)
    if root.level == "kernel":
        return f"One operation, `{root.operation}`{_arguments(model)}, in {dtype}"
    if root.level == "fusion":
        return f"A fusion of {len(model.parts)} operations, in {dtype}"
    if root.level == "layer":
        return f"One building block of a model, in {dtype}"
    noun = next(noun for noun, holds in _NOUNS if holds(model))
    layers = _layers(model)
    return f"{noun} of {layers}, in {dtype}" if layers else f"{noun} in {dtype}"


def _arguments(model: _Model) -> str:
    """` (stride 2x2, padding 1x1)`, or the operators where it is written out in several.

    Usual arguments are left out, and a recurrent layer's are told in words.
    """
    node = model.tree.root
    if node.operation in _RECURRENT:
        return ""
    work = [op for op in model.graph.operations if kind(op) not in {"view", "copy", "creation"}]
    if len(work) > 1:
        return f" (written as {', '.join(op.name for op in work)})"
    told = [
        f"{name} {_by(value) if isinstance(value, list) else value}"
        for name, value in node.attributes.items()
        if name == "kernel_size" or not any(_is_usual(op, name, value) for op in work)
    ]
    return _within(told)


def _is_usual(op: Operation, name: str, value: object) -> bool:
    usual = defaults(op)
    return name in usual and usual[name] == (tuple(value) if isinstance(value, list) else value)


def _is_causal(model: _Model, part: Part) -> bool:
    return "causal" in known_by(model.program, part)


def _attention(model: _Model) -> list[Part]:
    return model.named("attention")


def _contractions(model: _Model) -> set[str]:
    return {part.stem for part in model.parts if part.kernel and part.kernel.kind == "contraction"}


def _is_convolutional(model: _Model) -> bool:
    """Whether it convolves images or volumes, or mostly sequences."""
    found = [p.stem for p in model.parts if p.kernel and p.kernel.kind == "contraction"]
    images = any(name.startswith(("conv2d", "conv3d")) for name in found)
    return images or 2 * sum(name.startswith("conv") for name in found) > len(found)


def _is_mlp(model: _Model) -> bool:
    rest = {p.kernel.kind for p in model.parts if p.kernel and p.kernel.kind != "contraction"}
    flows = any(part.stem in {"cat", "stack"} for part in model.parts)
    return _contractions(model) == {"linear"} and rest <= _NORMS_AND_SHAPES and not flows


_NOUNS: tuple[tuple[str, Callable[[_Model], bool]], ...] = (
    (
        "A decoder",
        lambda m: bool(_attention(m)) and all(_is_causal(m, part) for part in _attention(m)),
    ),
    ("A transformer", lambda m: bool(_attention(m))),
    ("A recurrent network", lambda m: any(p.stem in _RECURRENT for p in m.parts)),
    ("A convolutional network", _is_convolutional),
    ("A fully connected network", _is_mlp),
    ("A model", lambda _: True),
)
"""What a model is called: the first that holds."""


def _layers(model: _Model) -> str:
    """`4 TransformerBlock layers (2 with a window of 16)`; nothing where there are none."""
    layers = [node for node in model.tree.nodes.values() if node.level == "layer"]
    by_class: dict[str, list[Node]] = {}
    for node in layers:
        by_class.setdefault(_class(model, node), []).append(node)
    if len(by_class) > _MOST_CLASSES:
        first, *_, last = by_class
        return f"{len(layers)} layers ({first} to {last})"
    told = []
    for name, nodes in by_class.items():
        words = [title(node).split()[1:] for node in nodes]
        common = set(words[0]).intersection(*words)
        different = Counter(" ".join(w for w in told if w not in common) for told in words)
        special = [f"{n} {_spelled(told)}" for told, n in different.items() if told]
        told.append(f"{pluralize(len(nodes), f'{name} layer')}{_within(special)}")
    return " and ".join(told)


def _spelled(told: str) -> str:
    """`causal with a window of 16 and sinks` for `causal window16 sinks`."""
    words = told.split()
    spelled = [_WINDOW.sub(r"a window of \1", word) for word in words]
    parts = [s for s, w in zip(spelled, words, strict=True) if s != w or w == "sinks"]
    rest = " ".join(word for word in spelled if word not in parts)
    return f"{rest} with {' and '.join(parts)}".strip() if parts else rest


def _within(words: Sequence[str]) -> str:
    """` (5 shifted)`."""
    return f" ({', '.join(words)})" if words else ""


def _class(model: _Model, node: Node) -> str:
    """The author's class of a layer where it is one module's, else the layer's own name."""
    own = model.graph.classes.get(node.module_path, "")
    stem = title(node).partition(" ")[0]
    return f"`{own}`" if own.lower() == stem.replace("_", "") else f"`{stem}`"


def _dtypes(graph: Graph) -> str:
    """The floating dtypes of weights, or of inputs where there are none."""
    weights = [graph.values[name] for name in graph.states if name in graph.values]
    specs = weights or [graph.values[given.name] for given in graph.inputs]
    return " and ".join(sorted({s.dtype for s in specs if s.floating} or {s.dtype for s in specs}))


# --- clauses --------------------------------------------------------------------------------------


def _embeddings(model: _Model) -> Iterator[str]:
    tables = {
        spec.shape for op in model.operations("embedding") if (spec := model.spec(op, "weight"))
    }
    for rows, width in sorted(tables, reverse=True):
        yield f"embeddings of {rows:,} entries of width {width}"


def _patches(model: _Model) -> Iterator[str]:
    for part in model.named("patch_embedding")[:1]:
        for i in part.operations:
            if weight := model.spec(model.graph.operations[i], "weight"):
                yield f"patches of {_by(weight.shape[2:])}, embedded in width {weight.shape[0]}"


def _attends(model: _Model) -> Iterator[str]:
    """Heads and positions of each different attention, from the scores that it computes."""
    found = list(dict.fromkeys(text for part in _attention(model) if (text := _heads(model, part))))
    yield from found if len(found) < 3 else [f"{found[0]}, up to {found[-1]}"]


def _heads(model: _Model, part: Part) -> str | None:
    """`attention of 8 heads for 2 key heads over 64 positions`; None where shapes do not say."""
    products = [
        op
        for i in part.operations
        if kind(op := model.graph.operations[i]) == "contraction" or "attention" in op.name
    ]
    if not products:
        return None
    first = products[0]
    query, key = (model.graph.values[name].shape for name in list(first.refs())[:2])
    if "attention" in first.name:
        scores = (*query[:-1], key[-2])
    else:
        scores = model.graph.values[first.outputs[0]].shape
    seen = "causal attention" if _is_causal(model, part) else "attention"
    batch = 1 if _has_no_batch(first) else scores[0]
    if len(scores) < 4 and batch == scores[0]:  # heads and batch may be one dimension
        return f"{seen} over {_positions(scores)}, for {scores[0]} batch entries and heads together"
    heads = prod(scores[:-2]) // max(batch, 1)
    width = prod(query) // max(batch * heads * scores[-2], 1)
    numbers = _numbers_unrepeated(model, part, [*first.refs()][1])
    keys = numbers // max(batch * scores[-1] * width, 1)
    grouped = f" for {pluralize(keys, 'key head')}" if 0 < keys < heads else ""
    over = f"{batch} × {_positions(scores)}" if batch > 1 else _positions(scores)
    return f"{seen} of {pluralize(heads, 'head')}{grouped} of width {width} over {over}"


def _has_no_batch(product: Operation) -> bool:
    """Whether an einsum of scores begins with heads, since query and key have no batch."""
    read, _, made = str(product.arg("equation") or "").replace(" ", "").partition("->")
    return bool(made) and made[0] != read[0]


def _numbers_unrepeated(model: _Model, part: Part, name: str) -> int:
    """How many numbers a tensor has before the kernel repeats it for several heads."""
    numbers = model.graph.values[name].numel
    made = {
        o: model.graph.operations[i]
        for i in part.operations
        for o in model.graph.operations[i].outputs
    }
    while (op := made.get(name)) is not None and (op.view or op.name in _REPEATS):
        name = next(op.refs())
        if (before := model.graph.values[name].numel) > numbers:
            break
        numbers = before
    return numbers


def _positions(scores: Sequence[int]) -> str:
    queries, keys = scores[-2:]
    return f"{queries} positions" + (f" to {keys}" if keys != queries else "")


def _shared_heads(model: _Model) -> Iterator[str]:
    if model.named("repeat_kv"):
        yield "each head of keys and values repeated for several of the queries"


def _rotary(model: _Model) -> Iterator[str]:
    if model.named("rope"):
        yield "rotary positions"
    if model.named("relative_position_bias"):
        yield "a relative position bias"


def _experts(model: _Model) -> Iterator[str]:
    for part in model.named("topk_router")[:1]:
        picked = [model.graph.operations[i] for i in part.operations]
        for op in picked:
            if op.name == "topk" and (scores := model.spec(op, "self")):
                yield f"a mixture of {scores.shape[-1]} experts, {op.arg('k')} for each token"


def _recurrence(model: _Model) -> Iterator[str]:
    for op in model.operations(*_RECURRENT):
        weights = op.arg("params")
        if not isinstance(weights, tuple) or not all(isinstance(w, Ref) for w in weights):
            continue
        shapes = [model.graph.values[w.name].shape for w in weights if isinstance(w, Ref)]
        ways = "bidirectional " if op.arg("bidirectional") is True else ""
        layers = op.arg("num_layers", 1)
        yield (
            f"{_RECURRENT[op.name]} of {pluralize(int(str(layers)), f'{ways}layer')}, "
            f"from width {shapes[0][1]} to a state of {shapes[1][1]}"
        )


def _widths(model: _Model) -> Iterator[str]:
    """The widths between linear layers, where there is nothing else that multiplies."""
    shapes = [spec.shape for op in model.operations("linear") if (spec := model.spec(op, "weight"))]
    if not _is_mlp(model) or not shapes:
        return
    runs = [(n, len(list(same))) for n, same in groupby([shapes[0][1], *(s[0] for s in shapes)])]
    if len(runs) <= _MOST_WIDTHS:
        told = " → ".join(str(n) if times == 1 else f"{n} (× {times})" for n, times in runs)
        yield f"widths {told}"


def _convolutions(model: _Model) -> Iterator[str]:
    """Windows of the convolutions, and how many go over each channel by itself or over groups."""
    found = [(op, weight) for op in _conv(model) if (weight := model.spec(op, "weight"))]
    if not found:
        return
    windows = Counter(_window(weight.shape[2:]) for _, weight in found)
    several = len(windows) > 1
    told = [f"{n} of {window}" for window, n in windows.most_common(4)] if several else []
    grouped = [(op, w) for op, w in found if op.arg("groups", 1) != 1]
    alone = [op for op, w in grouped if w.shape[1] == 1]
    what = "convolution"
    if len(alone) == len(found):
        what = "depthwise convolution"
    elif len(grouped) == len(found) and not alone:
        what = "grouped convolution"
    else:
        told += [f"{len(alone)} depthwise"] if alone else []
        told += [f"{len(grouped) - len(alone)} in groups"] if len(grouped) > len(alone) else []
    window = "" if several else f" of {next(iter(windows))}"
    yield f"{pluralize(len(found), what)}{window}{_within(told)}"


def _conv(model: _Model) -> list[Operation]:
    """The convolutions that embed no patches."""
    kernels = model.named("conv1d", "conv2d", "conv3d", "conv_transpose1d")
    kernels += model.named("conv_transpose2d", "conv_transpose3d")
    operations = sorted({i for part in kernels for i in part.operations})
    return [op for i in operations if (op := model.graph.operations[i]).name.startswith("conv")]


def _resolutions(model: _Model) -> Iterator[str]:
    """The sizes of feature maps in the order in which they come, with their most channels."""
    stages: list[tuple[tuple[int, ...], int]] = []
    for op in _conv(model) if _is_convolutional(model) else ():
        shape = model.graph.values[op.outputs[0]].shape
        if stages and stages[-1][0] == shape[2:]:
            stages[-1] = (shape[2:], max(stages[-1][1], shape[1]))
        else:
            stages.append((shape[2:], shape[1]))
    if 1 < len(stages) <= 12:
        told = " → ".join(f"{_by(sizes)} ({channels})" for sizes, channels in stages)
        yield f"resolution (most channels) {told}"


def _window(sizes: Sequence[int]) -> str:
    return _by(sizes) if len(sizes) > 1 else f"width {sizes[0]}"


def _by(sizes: Iterable[object]) -> str:
    return "x".join(map(str, sizes))


_CLAUSES: tuple[Callable[[_Model], Iterator[str]], ...] = (
    _embeddings,
    _patches,
    _attends,
    _shared_heads,
    _rotary,
    _experts,
    _recurrence,
    _widths,
    _convolutions,
    _resolutions,
)


def _listed(names: Sequence[str]) -> str:
    """A few in the order in which they run; of many `104 conv2d, 100 relu, 33 add and 3 others`."""
    if len(names) <= _MOST_OPERATIONS:
        return ", ".join(names)
    found = Counter(names).most_common()
    told = [f"{number} {name}" for name, number in found[:_MOST_OPERATIONS]]
    rest = sum(number for _, number in found[_MOST_OPERATIONS:])
    return ", ".join(told) + (f" and {pluralize(rest, 'other')}" if rest else "")
