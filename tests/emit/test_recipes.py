"""Tables and masks come out as the author's statements, and hold what the author's hold."""

import linecache
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from growth import times_longer

from runner.emit.inputs.tensor_recipes import RecipeWriter
from runner.graph.tracing.provenance import ProvenanceRecorder

SNIPPETS = {
    "positions filled by slices": """
pe = torch.zeros(6, 4)
position = torch.arange(0, 6, dtype=torch.float).unsqueeze(1)
scale = torch.exp(torch.arange(0, 4, 2).float() * -2.3)
pe[:, 0::2] = torch.sin(position * scale)
pe[:, 1::2] = torch.cos(position * scale)
result = pe.unsqueeze(0)
""",
    "an index shifted in place, twice": """
coords = torch.stack(torch.meshgrid(torch.arange(3), torch.arange(3), indexing="ij"))
coords = coords.flatten(1)
coords = coords[:, :, None] - coords[:, None, :]
coords = coords.permute(1, 2, 0).contiguous()
coords[:, :, 0] += 2
coords[:, :, 1] += 2
coords[:, :, 0] *= 5
result = coords.sum(-1)
""",
    "a view that is read after its base was written": """
table = torch.arange(6.0).reshape(2, 3)
row = table[0]
table.add_(1)
table[1] = row * 2
result = row + table[1]
""",
    "a name that is given again while the old value is read": """
x = torch.arange(4.0)
y = x * 2
old = x
x = x + y
x = x * old
result = torch.stack([x, y, old])
""",
    "the first part of a table that is unpacked": """
rows, columns = torch.triu_indices(4, 4, 1)
result = rows
""",
    "a part of a table, whose other parts look the same": """
table = torch.stack([torch.arange(4), torch.arange(4).flip(0), torch.ones(4).long()])
first, second, third = table[0], table[1], table[2]
result = second
""",
    "a mask of booleans": """
mask = torch.triu(torch.ones(5, 5), diagonal=1).bool()
mask = mask | ~torch.tril(torch.ones(5, 5), diagonal=2).bool()
result = torch.zeros(5, 5).masked_fill(mask, float("-inf"))
""",
    "a tensor written as numbers, then changed": """
kernel = torch.tensor([1.0, 2.0, 1.0])
kernel = kernel[:, None] * kernel[None, :]
kernel /= kernel.sum()
result = kernel.expand(3, 1, 3, 3)
""",
    "one value that is copied and changed": """
a = torch.linspace(0, 1, 5)
b = a.clone()
b[2:] = 7
b.clamp_(max=3)
result = torch.outer(a, b)
""",
}


def remade(source: str, name: str) -> tuple[str, torch.Tensor, torch.Tensor]:
    """(the statements that make the author's tensor again, what they make, the author's)."""
    file = f"<{name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    theirs: dict[str, object] = {"torch": torch, "F": F}
    recorder = ProvenanceRecorder()
    with recorder:
        exec(compile(source, file, "exec"), theirs)
    expected = theirs["result"]
    assert isinstance(expected, torch.Tensor)
    recipe = recorder.recipe(expected)
    assert recipe is not None
    lines, value = RecipeWriter(set()).write(recipe)
    text = "\n".join([*lines, f"result = {value}"])
    ours: dict[str, object] = {"torch": torch, "F": F}
    exec(text, ours)
    actual = ours["result"]
    assert isinstance(actual, torch.Tensor)
    return text, actual, expected


@pytest.mark.parametrize("name", SNIPPETS)
def test_a_recipe_makes_the_very_same_tensor(name: str) -> None:
    text, actual, expected = remade(SNIPPETS[name], name)
    assert torch.equal(actual, expected), text
    assert actual.stride() == expected.stride(), text


def test_names_slices_and_updates_are_those_of_the_author() -> None:
    text, _, _ = remade(SNIPPETS["positions filled by slices"], "read")
    assert text.splitlines() == [
        "pe = torch.zeros(6, 4)",
        "position = torch.arange(0, 6, dtype=torch.float32).unsqueeze(1)",
        "scale = torch.exp(torch.arange(0, 4, 2).to(torch.float32) * -2.3)",
        "pe[:, ::2] = torch.sin(position * scale)",
        "pe[:, 1::2] = torch.cos(position * scale)",
        "result = pe.unsqueeze(0)",
    ]


def test_what_two_tensors_have_in_common_is_computed_once() -> None:
    recorder = ProvenanceRecorder()
    with recorder:
        angles = torch.outer(torch.arange(4.0), torch.arange(3.0))
        cos, sin = torch.cos(angles), torch.sin(angles)
    recipes = RecipeWriter(set())
    assert recipes.write(recorder.recipe(cos)) == (
        ["angles = torch.arange(4.0).view(4, 1) * torch.arange(3.0)"],
        "torch.cos(angles)",
    )
    assert recipes.write(recorder.recipe(sin)) == ([], "torch.sin(angles)")


def test_a_long_chain_is_written_in_time_proportional_to_its_length() -> None:
    def write(length: int) -> Callable[[], object]:
        recorder = ProvenanceRecorder()
        with recorder:
            value = torch.ones(2)
            for _ in range(length):
                value = value.double().float() + value
        return lambda: RecipeWriter(set()).write(recorder.recipe(value))

    assert times_longer(write, 3, 4) < 40


def test_random_tensors_are_never_shared() -> None:
    recorder = ProvenanceRecorder()
    with recorder:
        a = torch.rand(3) + 1
        b = torch.rand(3) + 1
    recipes = RecipeWriter(set())
    texts = [recipes.write(recorder.recipe(t))[1] for t in (a, b)]
    assert texts == ["torch.rand(3) + 1"] * 2
