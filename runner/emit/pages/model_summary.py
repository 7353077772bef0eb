"""Describes a model in one paragraph, from its kernels and layers alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import prod

from runner.emit.pages.outline import title
from runner.graph.ir import Graph, Operation, Ref, TensorSpec
from runner.graph.operations import kind
from runner.quantities import pluralize
from runner.tree.default_arguments import default_arguments
from runner.tree.dimensions import join_dimensions
from runner.tree.document import Node, Tree
from runner.tree.interface import Program
from runner.tree.part import Part
from runner.tree.workload_words import identifying_words

_MOST_OPERATIONS = 7
_MOST_CLASSES = 3
_MOST_WIDTHS = 8
_WINDOW = re.compile(r"window(\d+)")
_RECURRENT = {"lstm": "an LSTM", "gru": "a GRU", "rnn_tanh": "an RNN", "rnn_relu": "an RNN"}
_REPEATS = {"repeat_interleave", "repeat", "expand", "reshape", "clone", "contiguous"}
_MLP_KINDS = {"normalization", "pointwise", "view", "copy"}


@dataclass(frozen=True)
class _DecomposedModel:
    """The decomposed model that the paragraph describes."""

    tree: Tree
    program: Program
    parts: tuple[Part, ...]
    """Kernel instances, in the order in which they run."""

    @property
    def graph(self) -> Graph:
        return self.program.graph

    def kernels_ending(self, *endings: str) -> list[Part]:
        """Return the kernels whose operation ends with one of these texts."""
        return [part for part in self.parts if part.stem.endswith(endings)]

    def operations(self, *names: str) -> list[Operation]:
        """Return the graph's operations with one of these names."""
        return [op for op in self.graph.operations if op.name in names]

    def spec(self, op: Operation, argument: str) -> TensorSpec | None:
        """Return the tensor that an operation takes as an argument; None if it takes none."""
        value = op.arg(argument)
        return self.graph.values[value.name] if isinstance(value, Ref) else None


def summarize_model(tree: Tree, program: Program, root: Part) -> str:
    """Return the paragraph: the kind of model, its characteristics, and its kernels, counted."""
    model = _DecomposedModel(tree, program, tuple(root.kernels()))
    description = _kind_of_model(model)
    clauses = [clause for describe in _CLAUSES for clause in describe(model)]
    sentences = [f"{description}: {'; '.join(clauses)}." if clauses else f"{description}."]
    if len(model.parts) > 1:
        sentences.append(f"Kernels: {_kernels_text([part.stem for part in model.parts])}.")
    return " ".join(sentences)


# --- the noun -------------------------------------------------------------------------------------


def _kind_of_model(model: _DecomposedModel) -> str:
    root, dtype = model.tree.root, _dtypes_text(model.graph)
    if root.level == "kernel":
        return f"One operation, `{root.operation}`{_arguments_text(model)}, in {dtype}"
    if root.level == "fusion":
        return f"A fusion of {len(model.parts)} operations, in {dtype}"
    if root.level == "layer":
        return f"One building block of a model, in {dtype}"
    noun = next(noun for noun, holds in _NOUNS if holds(model))
    layers = _layers_text(model)
    return f"{noun} of {layers}, in {dtype}" if layers else f"{noun} in {dtype}"


def _arguments_text(model: _DecomposedModel) -> str:
    """Return a kernel's arguments, ` (stride 2x2, padding 1x1)`, or its operators if several.

    Default arguments are left out. A recurrent layer's are described by `_recurrence`.
    """
    node = model.tree.root
    if node.operation in _RECURRENT:
        return ""
    computing = [
        op for op in model.graph.operations if kind(op) not in {"view", "copy", "creation"}
    ]
    if len(computing) > 1:
        return f" (written as {', '.join(op.name for op in computing)})"
    argument_texts = [
        f"{name} {join_dimensions(value) if isinstance(value, list) else value}"
        for name, value in node.attributes.items()
        if name == "kernel_size" or not any(_is_default(op, name, value) for op in computing)
    ]
    return _in_parentheses(argument_texts)


def _is_default(op: Operation, name: str, value: object) -> bool:
    usual = default_arguments(op)
    return name in usual and usual[name] == (tuple(value) if isinstance(value, list) else value)


def _is_causal(model: _DecomposedModel, part: Part) -> bool:
    return "causal" in identifying_words(model.program, part)


def _attention_kernels(model: _DecomposedModel) -> list[Part]:
    return model.kernels_ending("attention")


def _contractions(model: _DecomposedModel) -> set[str]:
    return {part.stem for part in model.parts if part.kernel and part.kernel.kind == "contraction"}


def _is_convolutional(model: _DecomposedModel) -> bool:
    """Return whether the model convolves images or volumes, or has mostly convolutions."""
    contractions = [p.stem for p in model.parts if p.kernel and p.kernel.kind == "contraction"]
    images = any(name.startswith(("conv2d", "conv3d")) for name in contractions)
    return images or 2 * sum(name.startswith("conv") for name in contractions) > len(contractions)


def _is_mlp(model: _DecomposedModel) -> bool:
    other_kinds = {
        p.kernel.kind for p in model.parts if p.kernel and p.kernel.kind != "contraction"
    }
    joins_tensors = any(part.stem in {"cat", "stack"} for part in model.parts)
    return _contractions(model) == {"linear"} and other_kinds <= _MLP_KINDS and not joins_tensors


_NOUNS: tuple[tuple[str, Callable[[_DecomposedModel], bool]], ...] = (
    (
        "A decoder",
        lambda m: (
            bool(_attention_kernels(m))
            and all(_is_causal(m, part) for part in _attention_kernels(m))
        ),
    ),
    ("A transformer", lambda m: bool(_attention_kernels(m))),
    ("A recurrent network", lambda m: any(p.stem in _RECURRENT for p in m.parts)),
    ("A convolutional network", _is_convolutional),
    ("A fully connected network", _is_mlp),
    ("A model", lambda _: True),
)
"""Nouns for models, each with its condition; the first one that holds is used."""


def _layers_text(model: _DecomposedModel) -> str:
    """Return `4 TransformerBlock layers (2 with a window of 16)`; "" without layers."""
    layers = [node for node in model.tree.nodes.values() if node.level == "layer"]
    by_class: dict[str, list[Node]] = {}
    for node in layers:
        by_class.setdefault(_class_name(model, node), []).append(node)
    if len(by_class) > _MOST_CLASSES:
        first, *_, last = by_class
        return f"{len(layers)} layers ({first} to {last})"
    layer_texts = []
    for name, nodes in by_class.items():
        words = [title(node).split()[1:] for node in nodes]
        common = set(words[0]).intersection(*words)
        variant_counts = Counter(
            " ".join(w for w in title_words if w not in common) for title_words in words
        )
        variants = [
            f"{n} {_phrase_words(variant)}" for variant, n in variant_counts.items() if variant
        ]
        layer_texts.append(f"{pluralize(len(nodes), f'{name} layer')}{_in_parentheses(variants)}")
    return " and ".join(layer_texts)


def _phrase_words(title_words: str) -> str:
    """Return `causal with a window of 16 and sinks` for `causal window16 sinks`."""
    words = title_words.split()
    phrases = [_WINDOW.sub(r"a window of \1", word) for word in words]
    additions = [
        phrase
        for phrase, title_word in zip(phrases, words, strict=True)
        if phrase != title_word or title_word == "sinks"
    ]
    other_words = " ".join(word for word in phrases if word not in additions)
    return f"{other_words} with {' and '.join(additions)}".strip() if additions else other_words


def _in_parentheses(words: Sequence[str]) -> str:
    """Return words in parentheses, ` (5 shifted)`; "" without words."""
    return f" ({', '.join(words)})" if words else ""


def _class_name(model: _DecomposedModel, node: Node) -> str:
    """Return the author's class of a layer if its name is the same, else the layer's own name."""
    author_class = model.graph.classes.get(node.module_path, "")
    stem = title(node).partition(" ")[0]
    return f"`{author_class}`" if author_class.lower() == stem.replace("_", "") else f"`{stem}`"


def _dtypes_text(graph: Graph) -> str:
    """Return the floating dtypes of the weights, or of the inputs if there are no weights.

    Without a floating one, return all of their dtypes.
    """
    weights = [graph.values[name] for name in graph.states if name in graph.values]
    specs = weights or [graph.values[graph_input.name] for graph_input in graph.inputs]
    return " and ".join(sorted({s.dtype for s in specs if s.floating} or {s.dtype for s in specs}))


# --- clauses --------------------------------------------------------------------------------------


def _embeddings(model: _DecomposedModel) -> Iterator[str]:
    tables = {
        spec.shape for op in model.operations("embedding") if (spec := model.spec(op, "weight"))
    }
    for rows, width in sorted(tables, reverse=True):
        yield f"embeddings of {rows:,} entries of width {width}"


def _patches(model: _DecomposedModel) -> Iterator[str]:
    for part in model.kernels_ending("patch_embedding")[:1]:
        for i in part.operations:
            if weight := model.spec(model.graph.operations[i], "weight"):
                yield (
                    f"patches of {join_dimensions(weight.shape[2:])}, "
                    f"embedded in width {weight.shape[0]}"
                )


def _attentions(model: _DecomposedModel) -> Iterator[str]:
    """Yield heads and positions of the different attentions."""
    texts = list(
        dict.fromkeys(
            text for part in _attention_kernels(model) if (text := _attention_text(model, part))
        )
    )
    yield from texts if len(texts) < 3 else [f"{texts[0]}, up to {texts[-1]}"]


def _attention_text(model: _DecomposedModel, part: Part) -> str | None:
    """Return `attention of 8 heads for 2 key heads of width 64 over 128 positions`.

    The shapes of query, key and scores tell the numbers. Return None if the kernel has no product.
    """
    products = [
        op
        for i in part.operations
        if kind(op := model.graph.operations[i]) == "contraction" or "attention" in op.name
    ]
    if not products:
        return None
    product = products[0]
    query, key = (model.graph.values[name].shape for name in list(product.refs())[:2])
    if "attention" in product.name:
        scores = (*query[:-1], key[-2])
    else:
        scores = model.graph.values[product.outputs[0]].shape
    noun = "causal attention" if _is_causal(model, part) else "attention"
    batch = 1 if _has_no_batch(product) else scores[0]
    if len(scores) < 4 and batch == scores[0]:  # heads and batch may share one dimension
        return f"{noun} over {_positions(scores)}, for {scores[0]} batch entries and heads together"
    heads = prod(scores[:-2]) // max(batch, 1)
    width = prod(query) // max(batch * heads * scores[-2], 1)
    numbers = _count_before_repeats(model, part, [*product.refs()][1])
    keys = numbers // max(batch * scores[-1] * width, 1)
    grouped = f" for {pluralize(keys, 'key head')}" if 0 < keys < heads else ""
    positions_text = f"{batch} × {_positions(scores)}" if batch > 1 else _positions(scores)
    return f"{noun} of {pluralize(heads, 'head')}{grouped} of width {width} over {positions_text}"


def _has_no_batch(product: Operation) -> bool:
    """Return whether an einsum of scores has no batch dimension, so that heads come first."""
    operands, _, result = str(product.arg("equation") or "").replace(" ", "").partition("->")
    return bool(result) and result[0] != operands[0]


def _count_before_repeats(model: _DecomposedModel, part: Part, name: str) -> int:
    """Return the number of elements of a tensor before the kernel repeats it for several heads."""
    numbers = model.graph.values[name].numel
    producers = {
        o: model.graph.operations[i]
        for i in part.operations
        for o in model.graph.operations[i].outputs
    }
    while (op := producers.get(name)) is not None and (op.view or op.name in _REPEATS):
        name = next(op.refs())
        if (source_numbers := model.graph.values[name].numel) > numbers:
            break
        numbers = source_numbers
    return numbers


def _positions(scores: Sequence[int]) -> str:
    queries, keys = scores[-2:]
    return f"{queries} positions" + (f" to {keys}" if keys != queries else "")


_PREPARATIONS = {
    "repeat_kv": "each head of keys and values repeated for several of the queries",
    "rope": "rotary positions",
    "relative_position_bias": "a relative position bias",
}
"""Kernels of which one is enough for a clause, and the clause."""


def _preparations(model: _DecomposedModel) -> Iterator[str]:
    yield from (text for name, text in _PREPARATIONS.items() if model.kernels_ending(name))


def _experts(model: _DecomposedModel) -> Iterator[str]:
    for part in model.kernels_ending("topk_router")[:1]:
        operations = [model.graph.operations[i] for i in part.operations]
        for op in operations:
            if op.name == "topk" and (scores := model.spec(op, "self")):
                yield f"a mixture of {scores.shape[-1]} experts, {op.arg('k')} for each token"


def _recurrence(model: _DecomposedModel) -> Iterator[str]:
    for op in model.operations(*_RECURRENT):
        weights = op.arg("params")
        if not isinstance(weights, tuple) or not all(isinstance(w, Ref) for w in weights):
            continue
        shapes = [model.graph.values[w.name].shape for w in weights if isinstance(w, Ref)]
        direction = "bidirectional " if op.arg("bidirectional") is True else ""
        layers = op.arg("num_layers", 1)
        yield (
            f"{_RECURRENT[op.name]} of {pluralize(int(str(layers)), f'{direction}layer')}, "
            f"from width {shapes[0][1]} to a state of {shapes[1][1]}"
        )


def _widths(model: _DecomposedModel) -> Iterator[str]:
    """Yield the widths between linear layers, if the model is an MLP."""
    shapes = [spec.shape for op in model.operations("linear") if (spec := model.spec(op, "weight"))]
    if not _is_mlp(model) or not shapes:
        return
    runs = [(n, len(list(run))) for n, run in groupby([shapes[0][1], *(s[0] for s in shapes)])]
    if len(runs) <= _MOST_WIDTHS:
        width_text = " → ".join(str(n) if times == 1 else f"{n} (× {times})" for n, times in runs)
        yield f"widths {width_text}"


def _convolutions(model: _DecomposedModel) -> Iterator[str]:
    """Yield the windows of the convolutions, and how many are depthwise or grouped."""
    convolutions = [
        (op, weight)
        for op in _convolution_operations(model)
        if (weight := model.spec(op, "weight"))
    ]
    if not convolutions:
        return
    windows = Counter(_window(weight.shape[2:]) for _, weight in convolutions)
    has_several = len(windows) > 1
    remarks = [f"{n} of {window}" for window, n in windows.most_common(4)] if has_several else []
    grouped = [(op, w) for op, w in convolutions if op.arg("groups", 1) != 1]
    depthwise = [op for op, w in grouped if w.shape[1] == 1]
    noun = "convolution"
    if len(depthwise) == len(convolutions):
        noun = "depthwise convolution"
    elif len(grouped) == len(convolutions) and not depthwise:
        noun = "grouped convolution"
    else:
        remarks += [f"{len(depthwise)} depthwise"] if depthwise else []
        remarks += (
            [f"{len(grouped) - len(depthwise)} in groups"] if len(grouped) > len(depthwise) else []
        )
    window = "" if has_several else f" of {next(iter(windows))}"
    yield f"{pluralize(len(convolutions), noun)}{window}{_in_parentheses(remarks)}"


def _convolution_operations(model: _DecomposedModel) -> list[Operation]:
    """Return the convolutions, without patch embeddings."""
    kernels = model.kernels_ending("conv1d", "conv2d", "conv3d", "conv_transpose1d")
    kernels += model.kernels_ending("conv_transpose2d", "conv_transpose3d")
    operations = sorted({i for part in kernels for i in part.operations})
    return [op for i in operations if (op := model.graph.operations[i]).name.startswith("conv")]


def _resolutions(model: _DecomposedModel) -> Iterator[str]:
    """Yield the sizes of the feature maps in execution order, with the most channels of each."""
    stages: list[tuple[tuple[int, ...], int]] = []
    for op in _convolution_operations(model) if _is_convolutional(model) else ():
        shape = model.graph.values[op.outputs[0]].shape
        if stages and stages[-1][0] == shape[2:]:
            stages[-1] = (shape[2:], max(stages[-1][1], shape[1]))
        else:
            stages.append((shape[2:], shape[1]))
    if 1 < len(stages) <= 12:
        stage_text = " → ".join(
            f"{join_dimensions(sizes)} ({channels})" for sizes, channels in stages
        )
        yield f"resolution (most channels) {stage_text}"


def _window(sizes: Sequence[int]) -> str:
    return join_dimensions(sizes) if len(sizes) > 1 else f"width {sizes[0]}"


_CLAUSES: tuple[Callable[[_DecomposedModel], Iterator[str]], ...] = (
    _embeddings,
    _patches,
    _attentions,
    _preparations,
    _experts,
    _recurrence,
    _widths,
    _convolutions,
    _resolutions,
)


def _kernels_text(names: Sequence[str]) -> str:
    """Return few names in execution order, many as `104 conv2d, 100 relu, 33 add and 3 others`."""
    if len(names) <= _MOST_OPERATIONS:
        return ", ".join(names)
    counts = Counter(names).most_common()
    texts = [f"{number} {name}" for name, number in counts[:_MOST_OPERATIONS]]
    remaining = sum(number for _, number in counts[_MOST_OPERATIONS:])
    return ", ".join(texts) + (f" and {pluralize(remaining, 'other')}" if remaining else "")
