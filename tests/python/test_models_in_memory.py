"""A model in memory: its parts, with its own weights and the caller's inputs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import kdrun
from runner.errors import CaptureError, DecompositionError, ProblemError, UsageError
from runner.store.result import ProblemResult, first_mismatch


class Norm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Attention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, 4, width // 4).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(attended.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.attention = Norm(width), Attention(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.attention(self.norm(x))


class Llama(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.embedding = nn.Embedding(100, width)
        self.layers = nn.ModuleList(Block(width) for _ in range(4))
        self.norm = Norm(width)
        self.head = nn.Linear(width, 100, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


@pytest.fixture(scope="module")
def model() -> Llama:
    torch.manual_seed(1)
    model = Llama()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


@pytest.fixture(scope="module")
def tokens() -> torch.Tensor:
    return torch.randint(3, 60, (2, 16), generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def parts(
    model: Llama, tokens: torch.Tensor, tmp_path_factory: pytest.TempPathFactory
) -> kdrun.Parts:
    folder = tmp_path_factory.mktemp("parts")
    return kdrun.decompose(model, (tokens,), name="my_llama", output=folder, keep_values=True)


def component(parts: kdrun.Parts, stem: str) -> kdrun.PartsComponent:
    return next(c for name, c in parts.components.items() if name.startswith(stem))


def test_the_parts_equal_the_object_with_its_own_weights(parts: kdrun.Parts) -> None:
    assert parts.verification.passed
    assert parts.verification.object_comparison == kdrun.ObjectComparison(0.0, True)


def test_the_tree_is_shown_as_text_and_as_html(parts: kdrun.Parts) -> None:
    text = repr(parts)
    assert "layer block causal × 4 (layers_0 … layers_3)" in text
    assert "2x16x32 → 2x16x32 fp32" in text
    assert "\x1b" not in text
    page = parts._repr_html_()
    assert page.count("<details") == page.count("</details>") > 1
    assert "2x16 i64 → 2x16x100 fp32" in page


def test_the_tree_leads_from_layers_to_their_children(parts: kdrun.Parts) -> None:
    assert len(parts.tree.layers) == 4
    attention = parts.tree.layers[3].children[1]
    assert (attention.id, attention.level) == ("layers_3.attention", "fusion")
    assert parts[attention.component].source.startswith(f'"""{attention.component}\n')


def test_a_component_is_built_with_the_weights_of_a_place(parts: kdrun.Parts, model: Llama) -> None:
    attention = component(parts, "attention")
    x = torch.randn(2, 16, 32)
    built = attention.build(instance="layers.3.attention")
    assert torch.equal(built(x), model.layers[3].attention(x))
    assert not torch.equal(attention.build()(x), built(x))


def test_a_component_in_each_of_its_places_is_replaced(
    parts: kdrun.Parts, model: Llama, tokens: torch.Tensor
) -> None:
    class FusedNorm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.empty(32))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.rms_norm(x, (32,), self.weight, eps=1e-6)

    composed = parts.compose(replace={component(parts, "rms_norm").name: FusedNorm})
    assert sum(isinstance(module, FusedNorm) for module in composed.modules()) == 5
    torch.testing.assert_close(composed(tokens), model(tokens))
    torch.testing.assert_close(composed(tokens=tokens), model(tokens))


class NormWithBias(Norm):
    def __init__(self) -> None:
        super().__init__(32)
        self.bias = nn.Parameter(torch.zeros(32))


@pytest.mark.parametrize(
    ("replacement", "message"),
    [
        (len, "a builtin_function_or_method is no class of nn.Module"),
        (nn.Linear, r"Linear\(\) raises TypeError: .*; it is built without arguments"),
        (nn.Identity, r"Identity has no parameter weight; the component has weight \[32\]"),
        (NormWithBias, r"NormWithBias has the parameter bias \[32\]; the component has"),
    ],
)
def test_a_wrong_replacement_is_one_line(
    parts: kdrun.Parts, replacement: type[nn.Module], message: str
) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        parts.compose(replace={component(parts, "rms_norm").name: replacement})
    assert "\n" not in str(caught.value)


def test_an_unknown_component_or_place_is_one_line(parts: kdrun.Parts) -> None:
    with pytest.raises(KeyError, match="no component 'attention'; is it attention_"):
        parts["attention"]
    with pytest.raises(UsageError, match=r"replace: no component 'rms'; is it rms_norm_"):
        parts.compose(replace={"rms": nn.Identity})
    with pytest.raises(UsageError, match=r"no place 'layers.9.attention'; is it layers_"):
        component(parts, "attention").build(instance="layers.9.attention")


def test_stored_inputs_are_those_that_reach_the_place(
    parts: kdrun.Parts, model: Llama, tokens: torch.Tensor
) -> None:
    seen = []
    hook = model.layers[2].attention.register_forward_pre_hook(lambda _, args: seen.extend(args))
    with torch.no_grad():
        model(tokens)
    hook.remove()
    (x,) = component(parts, "attention").inputs("layers.2.attention", real=True)
    assert torch.equal(x, seen[0])


def test_a_directory_that_is_opened_has_the_stored_weights(
    parts: kdrun.Parts, model: Llama, tokens: torch.Tensor
) -> None:
    opened = kdrun.open(parts.directory)
    assert opened.verification == parts.verification
    assert torch.equal(opened.compose()(tokens), model(tokens))


@pytest.mark.parametrize("level", ["level_0_kernel/rms_norm", "level_2_layer/block"])
def test_a_component_tests_itself_on_stored_values(parts: kdrun.Parts, level: str) -> None:
    (file,) = parts.directory.glob(f"{level}*.py")
    for values in ({}, {"KDRUN_VALUES": "1"}):
        done = subprocess.run(
            [sys.executable, file], env=os.environ | values, capture_output=True, text=True
        )
        assert (done.stdout, done.stderr) == ("PASS\n", "")


def test_the_directory_says_that_it_is_from_memory_and_is_like_any_other(
    parts: kdrun.Parts,
) -> None:
    original = (parts.directory / "original.py").read_text()
    assert original.startswith('"""my_llama, a model from memory.\n')
    assert "Not repeated here: the values of its weights" in original
    assert "## From memory" in (parts.directory / "decomposition_analysis.md").read_text()
    result = ProblemResult.from_directory(parts.directory)
    assert "values/weights.safetensors" in result.files
    assert first_mismatch(parts.directory, result.files) is None
    assert kdrun.verify(parts.directory).passed


def test_values_that_were_not_kept_are_missed_in_one_line(tmp_path: Path) -> None:
    parts = kdrun.decompose(nn.Linear(4, 2), (torch.randn(3, 4),), output=tmp_path)
    assert parts.directory == tmp_path / "custom" / "Linear"
    (linear,) = parts.components.values()
    assert "os" not in linear.source.split()
    with pytest.raises(UsageError, match=r"no values are stored; .* keep_values=True"):
        linear.inputs(real=True)


SOURCELESS = """
class Sourceless(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(8, 8)
        self.register_buffer("mask", torch.full((4, 4), float("-inf")).triu(1))

    def forward(self, batch, scale=2.0, bias=None):
        x = batch["x"] * scale
        mixed = torch.softmax(x @ x.transpose(-1, -2) + self.mask, -1) @ x
        return {"mixed": self.project(mixed) + bias, "sums": [mixed.sum(-1)]}
"""


def test_a_class_without_source_and_with_nested_inputs_is_taken_apart(tmp_path: Path) -> None:
    namespace = {"nn": nn, "torch": torch}
    exec(SOURCELESS, namespace)
    model = namespace["Sourceless"]()
    batch, bias = {"x": torch.randn(2, 4, 8)}, torch.ones(8)
    parts = kdrun.decompose(
        model, (batch,), {"bias": bias, "scale": 3.0}, name="sourceless", output=tmp_path
    )
    assert parts.verification.object_comparison is not None
    original = (parts.directory / "original.py").read_text()
    assert "Its source cannot be had: variables have general names.\n" in original
    assert "It was called with scale=3.0.\n" in original
    assert 'torch.full((4, 4), float("-inf")' in original
    expected = model(batch, 3.0, bias)
    mixed, sums = parts.compose()(batch, bias=bias)
    torch.testing.assert_close((mixed, sums), (expected["mixed"], expected["sums"][0]))


def test_a_model_stays_as_it_is(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.5))
    model[2].eval()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    kdrun.decompose(model, (torch.randn(4, 8),), name="trained", output=tmp_path, mode="train")
    assert [module.training for module in model.modules()] == [True, True, True, False]
    after = model.state_dict()
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())


class DecidesByValue(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.sum() > 0 else x.relu()


def test_a_decision_that_depends_on_values_is_said(tmp_path: Path) -> None:
    parts = kdrun.decompose(DecidesByValue(), (torch.ones(4),), name="decides", output=tmp_path)
    original = (parts.directory / "original.py").read_text()
    assert "It holds for inputs that lead to the same decisions:\n" in original


class Raises(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ x


class InNumpy(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(x.numpy() * 2)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((Raises(), (torch.ones(2, 3),)), ProblemError, "Raises: RuntimeError: mat1 and mat2"),
        ((InNumpy(), (torch.ones(200),)), CaptureError, "InNumpy: cannot be captured"),
        ((nn.ReLU(), (torch.ones(2), 3)), ProblemError, "ReLU.forward.. too many positional"),
        ((nn.ReLU(), torch.ones(2)), UsageError, "args is a Tensor, not a tuple"),
        ((nn.ReLU, (torch.ones(2),)), UsageError, "ReLU is no model in memory"),
        (("no_such_problem",), UsageError, "no_such_problem"),
    ],
)
def test_a_mistake_is_one_line(
    arguments: tuple[object, ...], error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message) as caught:
        kdrun.decompose(*arguments, output=tmp_path)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    assert [*tmp_path.rglob("*.py")] == []


def test_a_name_that_is_no_file_name_and_a_missing_directory_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="name='a/b': not a name for a file"):
        kdrun.decompose(nn.ReLU(), (torch.ones(2),), name="a/b", output=tmp_path)
    with pytest.raises(DecompositionError, match="no such directory"):
        kdrun.open(tmp_path / "nowhere")
