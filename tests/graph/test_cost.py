"""What operations cost, against figures worked out by hand."""

import pytest
from programs import Program

from runner.graph import Graph
from runner.graph.cost import flops, largest_node, moved_bytes


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


def test_attention_counts_scores_softmax_and_sum(program: Program) -> None:
    graph = program(
        "return F.scaled_dot_product_attention(q, k, v)",
        arguments="q, k, v",
        inputs="torch.randn(2, 3, 5, 8), torch.randn(2, 3, 7, 8), torch.randn(2, 3, 7, 4)",
    )
    assert total(graph) == 2 * 3 * 5 * 7 * (2 * 8 + 5 + 2 * 4)


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
    "x.t()": 0,
    "x.t().contiguous()": 0,
    "F.mse_loss(x, x)": 3 * 32,
    "torch.topk(x, 2)[0]": 32,
}


@pytest.mark.parametrize(("forward", "expected"), ELEMENTWISE.items(), ids=ELEMENTWISE)
def test_elements_are_counted(program: Program, forward: str, expected: int) -> None:
    assert total(program(f"return {forward}")) == expected


def test_bytes_are_moved_once_each_and_repetitions_not_at_all(program: Program) -> None:
    graph = program("return x * y.expand(4, 8) + x", arguments="x, y",
                    inputs="torch.randn(4, 8), torch.randn(8)")  # fmt: skip
    expand, mul, add = graph.operations
    assert moved_bytes(mul.refs(), mul.outputs, graph.values) == 4 * (32 + 8 + 32)
    assert moved_bytes(add.refs(), add.outputs, graph.values) == 4 * (32 + 32 + 32)
    assert expand.view


def test_the_largest_node_is_named_with_its_module(program: Program) -> None:
    graph = program(
        "return self.mlp(x).sum()",
        init="self.mlp = nn.Sequential(nn.Linear(8, 64), nn.ReLU())",
    )
    assert largest_node(graph) == (4 * (4 * 8 + 64 * 8 + 64 + 4 * 64), "linear in mlp.0")
