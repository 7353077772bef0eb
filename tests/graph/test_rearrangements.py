"""Copies that only put elements in another order are called what their field calls them."""

import pytest
from programs import Program, names

IMAGE = "torch.randn(2, 8, 12, 6)"  # NHWC: 8 = 2 * 4, 12 = 3 * 4; NCHW: 8 channels
WINDOWS = [
    (
        "window_partition",
        "h = x.view(2, 2, 4, 3, 4, 6)\n"
        "return h.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, 4, 4, 6)",
    ),
    (
        "window_partition",
        "h = x.reshape(2, 2, 4, 3, 4, 6).transpose(2, 3)\nreturn h.reshape(-1, 16, 6)",
    ),
    ("window_partition", "return x.unfold(1, 4, 4).unfold(2, 4, 4).contiguous()"),
    (
        "grid_partition",
        "h = x.view(2, 4, 2, 4, 3, 6)\nreturn h.permute(0, 2, 4, 1, 3, 5).reshape(-1, 4, 4, 6)",
    ),
    (
        "grid_partition",
        "h = x.view(2, 4, 2, 4, 3, 6).permute(0, 2, 4, 1, 3, 5)\n"
        "return h.contiguous().view(12, 16, 6)",
    ),
    (
        "space_to_depth",
        "h = x.view(2, 4, 2, 6, 2, 6)\nreturn h.permute(0, 1, 3, 2, 4, 5).reshape(2, 4, 6, 24)",
    ),
    (
        "space_to_depth",
        "h = x.reshape(2, 4, 2, 6, 2, 6).permute(0, 1, 3, 4, 2, 5)\nreturn h.flatten(3)",
    ),
    (
        "patchify",
        "return x.unfold(2, 4, 4).unfold(3, 3, 3).permute(0, 2, 3, 4, 5, 1).reshape(2, 6, -1)",
    ),
    (
        "patchify",
        "h = x.view(2, 8, 3, 4, 2, 3)\n"
        "return torch.einsum('nchpwq->nhwpqc', h).reshape(2, 6, 4 * 3 * 8)",
    ),
    (
        "pixel_shuffle",
        "h = x.view(2, 2, 2, 2, 12, 6)\nreturn h.permute(0, 1, 4, 2, 5, 3).reshape(2, 2, 24, 12)",
    ),
    ("pixel_shuffle", "return F.pixel_shuffle(x, 2)"),
    (
        "pixel_unshuffle",
        "h = x.view(2, 8, 6, 2, 3, 2)\n"
        "return h.permute(0, 1, 3, 5, 2, 4).contiguous().view(2, 32, 6, 3)",
    ),
    ("pixel_unshuffle", "return F.pixel_unshuffle(x, 2)"),
    (
        "channel_shuffle",
        "return x.view(2, 4, 2, 12, 6).transpose(1, 2).contiguous().view(2, 8, 12, 6)",
    ),
    (
        "channel_shuffle",
        "return x.reshape(2, 2, 4, 12, 6).permute(0, 2, 1, 3, 4).reshape(2, -1, 12, 6)",
    ),
]


@pytest.mark.parametrize(("operation", "forward"), WINDOWS)
def test_a_spelling_of_it_is_one_kernel(program: Program, operation: str, forward: str) -> None:
    assert names(program(forward, inputs=IMAGE)) == [operation]


REVERSED = [
    (
        "window_reverse",
        "h = x.view(2, 2, 3, 4, 4, 6)\n"
        "return h.permute(0, 1, 3, 2, 4, 5).contiguous().view(2, 8, 12, 6)",
    ),
    (
        "window_reverse",
        "h = x.view(-1, 2, 3, 4, 4, 6).permute(0, 1, 3, 2, 4, 5)\nreturn h.reshape(2, 96, 6)",
    ),
    (
        "grid_reverse",
        "h = x.view(2, 2, 3, 4, 4, 6)\n"
        "return h.permute(0, 3, 1, 4, 2, 5).contiguous().view(2, 8, 12, 6)",
    ),
    (
        "grid_reverse",
        "h = x.reshape(2, 2, 3, 4, 4, 6).permute(0, 3, 1, 4, 2, 5)\nreturn h.reshape(2, 8, 12, 6)",
    ),
]


@pytest.mark.parametrize(("operation", "forward"), REVERSED)
def test_windows_are_put_back(program: Program, operation: str, forward: str) -> None:
    assert names(program(forward, inputs="torch.randn(12, 4, 4, 6)")) == [operation]


PATCHES = [
    "h = x.view(2, 2, 3, 4, 4, 6)\nreturn h.permute(0, 5, 1, 3, 2, 4).reshape(2, 6, 8, 12)",
    "h = x.reshape(2, 2, 3, 4, 4, 6)\n"
    "return torch.einsum('nhwpqc->nchpwq', h).reshape(2, 6, 8, 12)",
]


@pytest.mark.parametrize("forward", PATCHES)
def test_patches_are_put_back(program: Program, forward: str) -> None:
    assert names(program(forward, inputs="torch.randn(2, 6, 96)")) == ["unpatchify"]


REPEATED = [
    "k = k[:, :, None].expand(2, 2, 3, 5, 4).reshape(2, 6, 5, 4)",
    "k = k.unsqueeze(2).expand(-1, -1, 3, -1, -1).contiguous().view(2, 6, 5, 4)",
    "k = k.repeat_interleave(3, dim=1)",
]


@pytest.mark.parametrize("repeat", REPEATED)
def test_heads_of_keys_are_repeated(program: Program, repeat: str) -> None:
    graph = program(
        repeat + "\nreturn q @ k.transpose(-1, -2)",
        arguments="q, k",
        inputs="torch.randn(2, 6, 5, 4), torch.randn(2, 2, 5, 4)",
    )
    assert names(graph) == ["repeat_kv", "matmul"]


NOT_QUITE = [
    ("window_partition", "return x.view(2, 2, 4, 3, 4, 6).permute(0, 3, 1, 2, 4, 5).contiguous()"),
    ("pixel_shuffle", "return x.view(2, 2, 2, 2, 12, 6).permute(0, 1, 2, 4, 3, 5).contiguous()"),
    ("patchify", "return x.view(2, 8, 3, 4, 6).permute(0, 2, 1, 3, 4).reshape(2, 3, -1)"),
    ("channel_shuffle", "return x.view(2, 4, 2, 12, 6).permute(0, 3, 2, 1, 4).contiguous()"),
    ("merge_heads", "return x.transpose(1, 2).reshape(2, 12, -1)"),
    ("split_heads", "return x.flatten(2).view(2, 8, 6, 12).transpose(1, 2).contiguous()"),
    ("repeat_kv", "return x[:, :, None].expand(2, 8, 3, 12, 6).reshape(2, 24, 12, 6)"),
]


@pytest.mark.parametrize(("operation", "forward"), NOT_QUITE)
def test_what_is_not_quite_it_stays_as_it_is(
    program: Program, operation: str, forward: str
) -> None:
    assert operation not in names(program(forward, inputs=IMAGE))


CONVOLVED = [
    "return self.proj(x).flatten(2).transpose(1, 2)",
    "h = self.proj(x)\nreturn h.view(2, 5, -1).permute(0, 2, 1)",
]


@pytest.mark.parametrize("forward", CONVOLVED)
def test_a_convolution_of_patches_into_tokens_embeds_them(program: Program, forward: str) -> None:
    init = "self.proj = nn.Conv2d(3, 5, kernel_size=4, stride=4)"
    graph = program(forward, inputs="torch.randn(2, 3, 8, 8)", init=init)
    assert names(graph) == ["patch_embedding"]


@pytest.mark.parametrize(
    ("forward", "window"),
    [
        ("return self.proj(x).flatten(2)", "kernel_size=3, stride=2"),
        ("return self.proj(x).flatten(2)", "kernel_size=4, stride=4, padding=2"),
        ("return self.proj(x).flatten(2)", "kernel_size=1"),
        ("return self.proj(x).relu()", "kernel_size=4, stride=4"),
    ],
)
def test_other_convolutions_are_convolutions(program: Program, forward: str, window: str) -> None:
    init = f"self.proj = nn.Conv2d(3, 5, {window})"
    graph = program(forward, inputs="torch.randn(2, 3, 8, 8)", init=init)
    assert names(graph)[0] == "conv2d"
