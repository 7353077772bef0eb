"""The tree as text that fits a screen, and the flow of data through one block."""

from small_trees import kernel, node, tree_of

from runner.emit.pages.block_dataflow import choose_block, dataflow_steps
from runner.emit.pages.diagram import draw_tree
from runner.emit.pages.outline import Outline


def conv(size: int) -> dict:
    kernels = [
        kernel(f"conv2d_3x{size}_k3_fp32", name="conv", weights={"weight": [size, 3, 3, 3]}),
        kernel(f"relu_{size}_fp32"),
    ]
    return node("fusion", f"conv2d_relu_3x{size}_k3_fp32", *kernels)


def block(size: int, name: str = "") -> dict:
    return node("layer", f"block_{size}_fp32", conv(size), kernel(f"add_{size}_fp32"), name=name)


def drawn(*children: dict, most: int = 40) -> list[str]:
    return list(draw_tree(Outline(tree_of(node("model", "net", *children))), most))


def test_equal_layers_are_one_line_with_their_count() -> None:
    lines = drawn(*(block(8, f"layers_{i}") for i in range(24)))
    assert len(lines) == 6
    assert lines[1].startswith("└── layer block × 24 (layers_0 … layers_23)  8x16 → 8x16 fp32")


def test_the_kernels_of_a_fusion_stand_below_it_with_their_shapes() -> None:
    lines = drawn(conv(8), kernel("add"))
    assert lines[1:4] == [
        "├── fusion conv2d_relu  8x16 → 8x16 fp32",
        "│   ├── conv2d (conv)   8x16 → 8x16 fp32",
        "│   └── relu            8x16 → 8x16 fp32",
    ]


def test_a_fusion_tells_its_kernels_in_its_own_line_where_lines_are_few() -> None:
    mlp = node("fusion", "mlp_8", kernel("linear_8"), kernel("linear_8"), kernel("add_8"))
    lines = drawn(conv(8), mlp, most=4)
    assert lines[1:] == [
        "├── fusion conv2d_relu  8x16 → 8x16 fp32",
        "└── fusion mlp          8x16 → 8x16 fp32: linear × 2, add",
    ]


def test_what_does_not_fit_is_left_out_from_the_bottom_up() -> None:
    lines = drawn(block(8), kernel("pool_8"), block(16, "last"), most=4)
    assert [line.split()[2] for line in lines[1:]] == ["block", "8x16", "block"]
    assert not any(line.startswith("│") for line in lines)


def test_blocks_that_alternate_stand_below_a_line_with_their_count() -> None:
    lines = drawn(*(child for _ in range(12) for child in (block(8), conv(4))))
    assert lines[1] == "└── × 12, in turn"
    assert sum("layer block" in line for line in lines) == 1


def test_layers_of_other_sizes_are_opened_once() -> None:
    lines = drawn(block(8), kernel("pool"), block(16), kernel("pool"), block(32))
    assert sum("layer block" in line for line in lines) == 3
    assert sum("as above" in line for line in lines) == 2


def test_a_long_network_of_many_sizes_stays_a_small_tree() -> None:
    assert len(drawn(*(conv(size) for size in range(1, 101)))) == 4
    grown = [child for i in range(1, 25) for child in (block(i), kernel(f"cat_{i}"))]
    assert len(drawn(*grown)) < 12


def test_lines_that_do_not_fit_are_counted() -> None:
    lines = drawn(*(kernel("ab"[n * n % 3 % 2] * (n + 1)) for n in range(40)), most=10)
    assert len(lines) == 10
    assert lines[-1] == "... 32 more"


# --- the flow of data -----------------------------------------------------------------------------


def followed(outline: Outline, most: int = 10) -> tuple[str, list[tuple[str, tuple[str, ...]]]]:
    found = choose_block(outline, most)
    assert found is not None
    return found.id, [(step.part, step.reads) for step in dataflow_steps(outline, found, most)]


def test_the_flow_is_that_of_the_repeated_layer() -> None:
    layers = [block(8, f"layers_{i}") for i in range(3)]
    tree = tree_of(
        node("model", "net", *layers),
        ("input", "0.0.0", "x"),
        *((f"{i}.0.0", f"{i}.0.1", "y") for i in range(3)),
        *((f"{i}.0.1", f"{i}.1", "y") for i in range(3)),
        ("input", "0.1", "x"),
        *((f"{i}.1", f"{i + 1}.0.0", "x") for i in range(2)),
        *((f"{i}.1", f"{i + 1}.1", "x") for i in range(2)),
        ("2.1", "output", "x"),
    )
    identity, rows = followed(Outline(tree))
    assert identity == "0"
    assert rows == [
        ("0", ("x 8x16 of input",)),
        ("0.1", ("y 8x16 of 0",)),
        ("1", ("y 8x16 of 0.1", "x 8x16 of input")),
    ]


def test_what_leaves_the_block_is_marked() -> None:
    fusion = node("fusion", "mlp", kernel("linear"), kernel("add"))
    tree = tree_of(
        node("model", "net", fusion, kernel("head")),
        *(("input", "0.0", "x"), ("0.0", "0.1", "y"), ("input", "0.1", "x")),
        *(("0.1", "1", "z"), ("1", "output", "logits")),
    )
    outline = Outline(tree)
    found = list(dataflow_steps(outline, tree.root, 10))
    assert [step.gives.endswith("→ output") for step in found] == [False, False, True]


def test_a_straight_line_has_no_flow_told() -> None:
    line = node("model", "net", kernel("relu"), kernel("exp"))
    flow = (("input", "0", "x"), ("0", "1", "y"), ("1", "output", "z"))
    assert choose_block(Outline(tree_of(line, *flow)), 10) is None


def test_a_block_of_too_many_kernels_has_the_flow_between_its_children_told() -> None:
    layers = [node("layer", "block_8", conv(8), kernel("add_8")) for _ in range(2)]
    edges = [("input", "0.0.0", "x"), ("input", "0.1", "x"), ("0.0.0", "0.0.1", "y")]
    tree = tree_of(node("model", "net", *layers), *edges, ("0.0.1", "0.1", "y"))
    _, rows = followed(Outline(tree), most=2)
    assert rows == [
        ("0", ("x 8x16 of input",)),
        ("1", ("x 8x16 of input", "y 8x16 of 0")),
    ]
