"""What operations cost, against figures worked out by hand."""

import pytest
import torch
from programs import Program

from runner.graph import Graph
from runner.graph.cost import flops, moved_bytes


def total(graph: Graph) -> int:
    return sum(flops(op, graph.values) for op in graph.operations)


CONTRACTIONS = {
    # a multiply-add counts two, each output's bias one
    "linear": ("nn.Linear(8, 16)", "torch.randn(4, 8)", 4 * 16 * (2 * 8 + 1)),
    "linear without bias": ("nn.Linear(8, 16, bias=False)", "torch.randn(4, 8)", 4 * 16 * 2 * 8),
    "conv1d": ("nn.Conv1d(3, 5, 3)", "torch.randn(2, 3, 10)", 2 * 5 * 8 * (2 * 3 * 3 + 1)),
    "conv2d": (
        "nn.Conv2d(3, 16, (3, 5), stride=2, padding=1)",
        "torch.randn(2, 3, 9, 11)",
        2 * 16 * 5 * 5 * (2 * 3 * 3 * 5 + 1),
    ),
    "grouped conv2d": (
        "nn.Conv2d(8, 8, 3, groups=4, bias=False)",
        "torch.randn(1, 8, 5, 5)",
        8 * 3 * 3 * 2 * 2 * 9,
    ),
    "conv3d": (
        "nn.Conv3d(2, 4, 2)",
        "torch.randn(1, 2, 3, 3, 3)",
        4 * 8 * (2 * 2 * 8 + 1),
    ),
    # each input element meets each weight of its group once
    "transposed conv2d": (
        "nn.ConvTranspose2d(3, 4, 3, stride=2)",
        "torch.randn(1, 3, 5, 5)",
        2 * 3 * 25 * 4 * 9 + 4 * 11 * 11,
    ),
    # 6 steps of 2 sequences; 4 gates of 7, each from 5 inputs and 7 states, two biases
    "lstm": (
        "nn.LSTM(5, 7)",
        "torch.randn(6, 2, 5)",
        12 * (2 * 28 * 5 + 2 * 28 * 7 + 2 * 28 + 13 * 7),
    ),
    "gru": (
        "nn.GRU(5, 7, num_layers=2, bias=False, bidirectional=True)",
        "torch.randn(6, 2, 5)",
        12 * 2 * ((2 * 21 * 5 + 2 * 21 * 7 + 11 * 7) + (2 * 21 * 14 + 2 * 21 * 7 + 11 * 7)),
    ),
}


@pytest.mark.parametrize(("layer", "inputs", "expected"), CONTRACTIONS.values(), ids=CONTRACTIONS)
def test_a_layer_counts_its_multiply_adds(
    program: Program, layer: str, inputs: str, expected: int
) -> None:
    result = "[0]" if "nn.LSTM" in layer or "nn.GRU" in layer else ""
    graph = program(f"return self.layer(x){result}", init=f"self.layer = {layer}", inputs=inputs)
    assert total(graph) == expected


PRODUCTS = {
    "x @ y": ("(3, 4, 5)", "(3, 5, 6)", 2 * 3 * 4 * 5 * 6),
    "x @ y[0]": ("(3, 4, 5)", "(2, 5)", 2 * 3 * 4 * 5),
    "torch.bmm(x, y)": ("(3, 4, 5)", "(3, 5, 6)", 2 * 3 * 4 * 5 * 6),
    "torch.mv(x, y)": ("(4, 5)", "(5,)", 2 * 4 * 5),
    "torch.addmm(x[:, :1], x, y)": ("(4, 5)", "(5, 6)", 4 * 6 * (2 * 5 + 1)),
    "torch.outer(x, y)": ("(4,)", "(5,)", 4 * 5),
    "torch.einsum('bik,bkj->bij', x, y)": ("(3, 4, 5)", "(3, 5, 6)", 2 * 3 * 4 * 5 * 6),
    "torch.einsum('...ik,jk->...ij', x, y)": ("(3, 4, 5)", "(6, 5)", 2 * 3 * 4 * 5 * 6),
    "torch.einsum('bi,bi->bi', x, y)": ("(3, 4)", "(3, 4)", 3 * 4),
    "torch.einsum('ij,kj,kl->il', x, y, y)": (
        *("(3, 4)", "(5, 4)"),
        2 * 3 * 5 * 4 + 2 * 3 * 5 * 4,
    ),
}


@pytest.mark.parametrize(
    ("product", "left", "right", "expected"),
    [(name, *rest) for name, rest in PRODUCTS.items()],
    ids=PRODUCTS,
)
def test_a_product_counts_its_multiply_adds(
    program: Program, product: str, left: str, right: str, expected: int
) -> None:
    graph = program(
        f"return {product}",
        arguments="x, y",
        inputs=f"torch.randn{left}, torch.randn{right}",
    )
    assert total(graph) == expected


@pytest.mark.skipif(
    not hasattr(torch.nn.functional, "grouped_mm"), reason="this torch has no grouped_mm"
)
def test_a_grouped_product_multiplies_each_row_with_one_matrix(program: Program) -> None:
    graph = program(
        "return F.grouped_mm(x, y, offs=torch.tensor([2, 5, 8], dtype=torch.int32))",
        arguments="x, y",
        inputs="torch.randn(8, 16), torch.randn(3, 16, 32)",
    )
    assert graph.capture == "fake"
    assert total(graph) == 2 * 8 * 16 * 32


def test_attention_counts_scores_softmax_and_sum(program: Program) -> None:
    graph = program(
        "return F.scaled_dot_product_attention(q, k, v)",
        arguments="q, k, v",
        inputs="torch.randn(2, 3, 5, 8), torch.randn(2, 3, 7, 8), torch.randn(2, 3, 7, 4)",
    )
    assert total(graph) == 2 * 3 * 5 * 7 * (2 * 8 + 5 + 2 * 4)


def test_causal_attention_counts_the_scores_up_to_the_diagonal(program: Program) -> None:
    graph = program(
        "return F.scaled_dot_product_attention(x, x, x, is_causal=True)",
        inputs="torch.randn(2, 3, 5, 8)",
    )
    assert total(graph) == 2 * 3 * (1 + 2 + 3 + 4 + 5) * (2 * 8 + 5 + 2 * 8)


ELEMENTWISE = {
    "x.exp()": 32,
    "x + x": 32,
    "x.to(torch.float64)": 0,
    "x.sum(-1)": 32,
    "x.softmax(-1)": 5 * 32,
    "F.layer_norm(x, (8,))": 8 * 32,
    "F.max_pool1d(x, 2)": 16 * 2,
    "F.avg_pool2d(x[None, None], 2)": 8 * 4,
    "F.adaptive_avg_pool1d(x, 2)": 32,
    "torch.cat((x, x))": 0,
    "x.masked_fill(x > 0, 0.0)": 0,
    "torch.where(x > 0, x, 0.0).exp()": 32,
    "x.t()": 0,
    "x.t().contiguous()": 0,
    "F.mse_loss(x, x)": 3 * 32,
    "torch.topk(x, 2)[0]": 32,
}


@pytest.mark.parametrize(("forward", "expected"), ELEMENTWISE.items(), ids=ELEMENTWISE)
def test_elements_are_counted(program: Program, forward: str, expected: int) -> None:
    assert total(program(f"return {forward}")) == expected


MOVED = {
    # what is read + what is written, in elements of 4 bytes; an index has 8
    "an addition of a tensor to itself": ("x + x", "torch.randn(4, 8)", 4 * (32 + 32)),
    "a linear layer": ("F.linear(x, y)", "torch.randn(4, 8), torch.randn(16, 8)",
                       4 * (32 + 128 + 64)),
    "what repeats a vector": ("x * y.expand(4, 8)", "torch.randn(4, 8), torch.randn(8)",
                              4 * (32 + 8 + 32)),
    "a table of 1000 rows": ("F.embedding(x, y)", "torch.randint(0, 9, (3,)), torch.randn(1000, 8)",
                             8 * 3 + 4 * (3 * 8 + 3 * 8)),
    "more look-ups than rows": ("F.embedding(x, y)", "torch.randint(0, 2, (9,)), torch.randn(2, 8)",
                                8 * 9 + 4 * (2 * 8 + 9 * 8)),
    "selected rows": ("x.index_select(0, y)", "torch.randn(1000, 8), torch.randint(0, 9, (3,))",
                      8 * 3 + 4 * (24 + 24)),
    "an index of rows": ("x[y]", "torch.randn(1000, 8), torch.randint(0, 9, (3,))",
                         8 * 3 + 4 * (24 + 24)),
    "gathered elements": ("x.gather(1, y)", "torch.randn(4, 100), torch.randint(0, 9, (4, 2))",
                          8 * 8 + 4 * (8 + 8)),
    "the greatest of all": ("torch.topk(x, 2)[0]", "torch.randn(4, 100)", 4 * (400 + 8)),
    "a slice": ("x[:2].exp()", "torch.randn(8, 8)", 4 * (16 + 16)),
    "two halves": ("x[:, ::2] * x[:, 1::2]", "torch.randn(8, 8)", 4 * (64 + 32)),
    "one half twice": ("x[:, ::2].exp() * x[:, ::2].sin()", "torch.randn(8, 8)", 4 * (32 + 32)),
    "the used part of a mask": ("x.masked_fill(y[:4, :4] == 0, 0.0)",
                                "torch.randn(4, 4), torch.ones(64, 64)", 4 * (16 + 16 + 16)),
    "an input that lends its shape": ("torch.zeros_like(x)", "torch.randn(8, 8)", 4 * 64),
    "a 1 x 1 convolution of stride 2": ("F.conv2d(x, y, stride=2)",
                                        "torch.randn(1, 3, 8, 8), torch.randn(5, 3, 1, 1)",
                                        4 * (3 * 16 + 15 + 5 * 16)),
    "a 3 x 3 convolution of stride 2": ("F.conv2d(x, y, stride=2)",
                                        "torch.randn(1, 3, 9, 9), torch.randn(5, 3, 3, 3)",
                                        4 * (3 * 81 + 135 + 5 * 16)),
    "a pool": ("F.max_pool2d(x, 2)", "torch.randn(1, 3, 8, 8)", 4 * (192 + 48)),
    "windows that overlap": ("x.unfold(0, 4, 1).exp()", "torch.randn(10)", 4 * (10 + 28)),
}  # fmt: skip


@pytest.mark.parametrize(("forward", "inputs", "expected"), MOVED.values(), ids=MOVED)
def test_bytes_are_those_that_are_read_and_written(
    program: Program, forward: str, inputs: str, expected: int
) -> None:
    arguments = "x, y" if ", torch" in inputs else "x"
    graph = program(f"return {forward}", arguments=arguments, inputs=inputs)
    ends = [given.name for given in graph.inputs]
    assert moved_bytes(graph.operations, ends, graph.output_names(), graph.values) == expected


def test_a_tensor_that_two_operations_read_counts_for_each_of_them(program: Program) -> None:
    graph = program("return x * y.expand(4, 8) + x", arguments="x, y",
                    inputs="torch.randn(4, 8), torch.randn(8)")  # fmt: skip
    expand, mul, add = graph.operations
    assert moved_bytes([mul], mul.refs(), mul.outputs, graph.values) == 4 * (32 + 8 + 32)
    assert moved_bytes([add], add.refs(), add.outputs, graph.values) == 4 * (32 + 32 + 32)
    assert expand.view
