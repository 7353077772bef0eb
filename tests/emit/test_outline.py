"""The rows in which people see a tree: what repeats is told once."""

import random
from typing import Any

import pytest
from small_trees import kernel, node, tree_of

from runner.emit.pages.outline import (
    MOST_ALIKE,
    MOST_ROWS,
    MOST_TURNS,
    Outline,
    OutlineItem,
    OutlineRow,
    author_names,
    format_shapes,
    heading,
    title,
)
from runner.tree.document import Node


def outline_of(*children: dict[str, Any]) -> Outline:
    return Outline(tree_of(node("model", "net", *children)))


def rows_of(*children: dict[str, Any]) -> list[OutlineRow]:
    outline = outline_of(*children)
    return outline.rows(outline.tree.root)


def told(rows: list[OutlineRow]) -> list[tuple[int, list[tuple[str, int]]]]:
    """Of each row its count, and of each item in it the first name and how many stand in a row."""
    return [(row.count, [(item.first.name, item.run_length) for item in row.items]) for row in rows]


def item_of(**about: Any) -> OutlineItem:
    children = [kernel("add_8x16_fp32", **about)]
    return rows_of(*children)[0].items[0]


def block(kind: str, size: int = 16) -> dict[str, Any]:
    return node("layer", f"{kind}_8x{size}_fp32", kernel(f"relu_8x{size}_fp32"))


def test_neighbours_of_one_workload_share_a_row() -> None:
    rows = rows_of(*(kernel("linear_16x16_fp32", name=f"layers_{i}") for i in range(6)))
    assert told(rows) == [(1, [("layers_0", 6)])]
    assert rows[0].items[0].nodes[-1].name == "layers_5"


def test_what_does_not_repeat_keeps_its_order() -> None:
    rows = rows_of(kernel("a"), kernel("b"), kernel("c"), kernel("a"))
    assert [row.items[0].first.name for row in rows] == ["a", "b", "c", "a"]


def test_blocks_that_alternate_share_a_row() -> None:
    rows = rows_of(kernel("embedding"), *(kernel("ab"[i % 2]) for i in range(24)), kernel("head"))
    assert told(rows) == [
        (1, [("embedding", 1)]),
        (12, [("a", 1), ("b", 1)]),
        (1, [("head", 1)]),
    ]


def test_equal_turns_begin_where_the_first_turn_of_other_sizes_begins() -> None:
    sizes = [("conv2d_3x8_fp32", "conv2d_8x8_fp32")[i > 0] for i in range(3)]
    turns = [
        kernel(path, name=name) for size in sizes for path, name in ((size, "c"), ("relu", "r"))
    ]
    rows = rows_of(*turns, kernel("conv2d_8x2_fp32", name="last"))
    assert told(rows) == [
        (1, [("c", 1)]),
        (1, [("r", 1)]),
        (2, [("c", 1), ("r", 1)]),
        (1, [("last", 1)]),
    ]


def test_equal_neighbours_within_a_period_are_counted_in_it() -> None:
    rows = rows_of(*(kernel(letter) for letter in "aabaab"))
    assert told(rows) == [(2, [("a", 2), ("b", 1)])]
    assert len(rows[0].items[0].nodes) == 4


def test_a_few_sizes_of_one_block_are_rows_of_their_own() -> None:
    assert len(rows_of(*(block("stage", 2**i) for i in range(MOST_ALIKE)))) == MOST_ALIKE


def test_many_sizes_of_one_block_share_a_row() -> None:
    (row,) = rows_of(*(block("stage", 2**i) for i in range(MOST_ALIKE + 1)))
    assert len(row.items[0].nodes) == MOST_ALIKE + 1
    assert not row.items[0].equal


def test_blocks_that_grow_and_alternate_share_a_row() -> None:
    pairs = [(block("dense_layer", 16 + i), kernel(f"cat_8x{16 + i}_fp32")) for i in range(24)]
    (row,) = rows_of(*(child for pair in pairs for child in pair))
    assert (row.count, [title(item.first) for item in row.items]) == (24, ["dense_layer", "cat"])


def test_a_few_turns_of_blocks_that_grow_are_rows_of_their_own() -> None:
    turns = [
        (block("double_conv", 2**i), kernel(f"max_pool2d_8x{2**i}")) for i in range(MOST_TURNS)
    ]
    assert len(rows_of(*(child for turn in turns for child in turn))) == 2 * MOST_TURNS


def test_blocks_of_another_structure_share_no_row() -> None:
    other = node("layer", "stage_8x5_fp32", kernel("relu_8x5_fp32"), kernel("add_8x5_fp32"))
    rows = rows_of(*(block("stage", i) for i in range(20, 40)), other)
    assert [len(row.items[0].nodes) for row in rows] == [20, 1]


def test_many_children_are_rows_in_the_order_in_which_they_run() -> None:
    letters = [*"abcdefabdcfe" * 4, *"fedcba"]
    rows = rows_of(*map(kernel, letters))
    firsts = [int(row.items[0].first.id) for row in rows]
    assert firsts == sorted(firsts)
    for row in rows:
        first = int(row.items[0].first.id)
        covered = sorted(int(n.id) for item in row.items for n in item.nodes)
        assert covered == list(range(first, first + len(covered)))


def test_where_rows_are_many_neighbours_that_differ_in_their_sizes_share_one() -> None:
    names = [chr(ord("a") + n % 26) * (1 + n // 26) for n in range(MOST_ROWS)]
    rows = rows_of(*(kernel(f"{name}_8x{size}_fp32") for name in names for size in (16, 32)))
    assert [len(row.items[0].nodes) for row in rows] == [2] * MOST_ROWS


@pytest.mark.parametrize("seed", range(20))
def test_each_child_is_in_exactly_one_row(seed: int) -> None:
    generator = random.Random(seed)
    sizes = [generator.choice((2, 3)) for _ in range(generator.randrange(1, 60))]
    outline = outline_of(*(block(generator.choice("ab"), size) for size in sizes))
    root = outline.tree.root
    rows = outline.rows(root)
    placed = [n.id for row in rows for item in row.items for n in item.nodes]
    assert sorted(placed) == sorted(root.children)
    assert all(len(item.nodes) == row.count * item.run_length for row in rows for item in row.items)


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("linear_768x3072_on_8x128_fp32", "linear"),
        ("conv2d_3x64_k7s2p3_on_10x224x224_nobias_fp32", "conv2d"),
        ("basic_block_2x64x56x56_to_2x128x28x28_fp32", "basic_block"),
        ("swin_block_2x14x14x128_shifted_masked_36ed_fp32", "swin_block shifted masked"),
        ("softmax_2x8x64_window16_bf16", "softmax window16"),
        ("slice_update_32x12x64_at10_fp32", "slice_update"),
        ("add_10x2x128_permuted_1_0_2_fp32", "add"),
        ("inception_module_10x512x14x14_conv2d_512x160_k1_fp32", "inception_module"),
        ("lstm_128x256_l2_bidirectional_fp32", "lstm bidirectional"),
        ("transformer_layer_2x64x256_79bd_bf16", "transformer_layer"),
        ("shortcut_32x64_k1s2_on_4x28x28_nobias_as_conv2d_bn_fp32", "shortcut"),
        ("conv_relu", "conv_relu"),
        ("add_scalar_fp32", "add"),
        ("div_add_scalar_by2_add_in2_fp32", "div_add add"),
        ("func_scalar_to_5x4_2f22_fp32", "func"),
        ("mul_5x4_scalar_fp32", "mul"),
        ("layer_scalar_mix_5x4_2f22_fp32", "layer_scalar_mix"),
    ],
)
def test_a_title_is_a_name_without_sizes(file: str, said: str) -> None:
    outline = outline_of(kernel(file))
    assert title(outline.children_of(outline.tree.root)[0]) == said


def test_an_authors_name_is_told_where_it_says_more() -> None:
    assert author_names(item_of(name="residual")) == "residual"
    assert author_names(item_of(name="add_2")) == ""
    (row,) = rows_of(kernel("lstm_8x4_bidirectional_fp32", name="lstm"))
    assert author_names(row.items[0]) == ""
    (row,) = rows_of(kernel("add", name="skip_0"), kernel("add", name="skip_1"))
    assert author_names(row.items[0]) == "skip_0, skip_1"


def test_shapes_are_told_with_their_dtype_once() -> None:
    both = item_of(inputs=([8, 16], [8, 16], [4]), outputs=([8, 32],))
    assert format_shapes(both) == "8x16 × 2, 4 → 8x32 fp32"
    assert format_shapes(item_of(inputs=(), outputs=([],))) == "nothing → scalar fp32"


def test_shapes_of_several_dtypes_are_told_each_with_its_own() -> None:
    embedding = kernel("embedding_16x4_fp32", inputs=([8],), outputs=([8, 4],))
    embedding["input_dtypes"] = {"x0": "int64"}
    (row,) = rows_of(embedding)
    assert format_shapes(row.items[0]) == "8 i64 → 8x4 fp32"


def test_shapes_of_several_sizes_are_ranges() -> None:
    grown = OutlineItem(
        tuple(
            Node.model_validate(kernel(f"k{n}", inputs=([2, n, 64 // n],)) | {"id": str(n)})
            for n in (4, 8, 16)
        )
    )
    assert format_shapes(grown) == "2x(4…16)x(16…4) → 8x16 fp32"


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("slice_update_8x8_8x4_slice_scatter_d1_from2_fp32", "slice_update scatter from 2"),
        ("pow_8x8_tom3_fp32", "pow to -3"),
        ("mul_8x8_bym0p5_fp32", "mul by -0.5"),
        ("masked_fill_8x8_valueminf_fp32", "masked_fill value -inf"),
    ],
)
def test_numbers_of_a_name_are_read_as_numbers(name: str, read: str) -> None:
    assert heading(rows_of(kernel(name))[0].items[0].first) == read
