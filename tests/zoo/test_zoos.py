"""Models of packages by name: listed, written as problem files, and built where they can be."""

import importlib.metadata
import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from runner.batch import local_execution
from runner.batch.submit import prepare
from runner.cli import cli
from runner.config import Settings
from runner.errors import UsageError
from runner.problems import read_problem
from runner.zoo import list_zoo, list_zoos, read_zoo_origin, write_zoo_problems

DOUBLES = {
    "timm/__init__.py": """\
from types import SimpleNamespace

from timm.models import tiny


def list_models():
    return ["tiny_vit", "tiny_net", "odd"]


def model_entrypoint(name):
    return tiny.build


def create_model(name):
    return tiny.build()
""",
    "timm/models/__init__.py": """\
from types import SimpleNamespace


def get_pretrained_cfg(name):
    return None if name == "odd" else SimpleNamespace(input_size=(3, 16, 16))
""",
    "timm/models/tiny.py": """\
from torch import nn


def build():
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
""",
    "torchvision/__init__.py": "from torchvision import models\n",
    "torchvision/models/__init__.py": """\
from functools import partial
from types import SimpleNamespace

from torchvision.models.detection import boxes
from torchvision.models.video import clips


def list_models():
    return ["clips", "boxes"]


def get_model_builder(name):
    return {"clips": clips.clips, "boxes": boxes.boxes}[name]


def get_model_weights(name):
    return [SimpleNamespace(transforms=partial(print, crop_size=(112, 112)))]
""",
    "torchvision/models/detection/__init__.py": "",
    "torchvision/models/detection/boxes.py": """\
def boxes(weights=None, weights_backbone="a download"): ...
""",
    "torchvision/models/video/__init__.py": "",
    "torchvision/models/video/clips.py": "def clips(weights=None): ...\n",
    "transformers/__init__.py": """\
class Config:
    vocab_size = 50

    def get_text_config(self, decoder=False):
        return self


class SideConfig(Config):
    is_encoder_decoder = True
    max_position_embeddings = 32


class WordModel:
    main_input_name = "input_ids"
    config_class = Config

    def forward(self, input_ids=None, attention_mask=None, use_cache=None): ...


class SidesForConditionalGeneration:
    main_input_name = "input_ids"
    config_class = SideConfig

    def forward(self, input_ids=None, decoder_input_ids=None): ...


class GridModel:
    main_input_name = "grid"
    config_class = Config

    def forward(self, grid): ...


class XcodecModel:
    main_input_name = "input_values"
    config_class = Config

    def forward(self, input_values): ...
""",
    "transformers/models/__init__.py": "",
    "transformers/models/auto/__init__.py": "",
    "transformers/models/auto/configuration_auto.py": """\
def model_type_to_module_name(model_type):
    return model_type.replace("-", "_")
""",
    "transformers/models/auto/modeling_auto.py": """\
MODEL_MAPPING_NAMES = {"alias": "WordModel", "word": "WordModel", "grid": ("GridModel", "Other"),
    "xcodec": "XcodecModel"}
MODEL_FOR_CAUSAL_LM_MAPPING_NAMES = {}
MODEL_FOR_MASKED_LM_MAPPING_NAMES = {}
MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES = {}
MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES = {"sides": "SidesForConditionalGeneration"}
""",
    "diffusers/__init__.py": """\
from diffusers import models
from diffusers.models import AutoencoderKL, ModelMixin, MotionAdapter, NewModel
from diffusers.models import AllegroTransformer3DModel
""",
    "diffusers/models/__init__.py": """\
class ModelMixin: ...


class AutoencoderKL(ModelMixin):
    def __init__(self, in_channels=3): ...


class NewModel(ModelMixin):
    def __init__(self, width): ...


class MotionAdapter(ModelMixin): ...


class AllegroTransformer3DModel(ModelMixin): ...
""",
}
EXPECTED = {
    "timm": {
        "odd": ("tiny", "timm documents no input size for odd"),
        "tiny_net": ("tiny", "torch.randn(1, 3, 16, 16)"),
        "tiny_vit": ("tiny", 'create_model("tiny_vit")'),
    },
    "torchvision": {
        "boxes": ("detection.boxes", "[[torch.rand(3, 800, 800)]]"),
        "clips": ("video.clips", "torch.randn(1, 3, 16, 112, 112)"),
    },
    "transformers": {
        "GridModel": ("grid", "its forward() needs grid, for which there is no default size"),
        "SidesForConditionalGeneration": ("sides", "torch.randint(0, 50, (1, 32))"),
        "WordModel": ("word", "torch.randint(0, 50, (1, 128))"),
        "XcodecModel": ("xcodec", "torch.randn(1, 1, 16000)"),
    },
    "diffusers": {
        "AllegroTransformer3DModel": ("models", "torch.cartesian_prod(torch.arange(5), "),
        "AutoencoderKL": ("models", "torch.randn(1, 3, 256, 256)"),
        "MotionAdapter": ("models", "its forward() does nothing"),
        "NewModel": ("models", "has no default configuration: it needs width"),
    },
}
"""For each model of the doubles: its family, and a text in its problem file."""
INSTALLED = {
    "timm": ("test_vit", "test_resnet", "test_convnext"),
    "torchvision": ("squeezenet1_1", "mobilenet_v3_small", "shufflenet_v2_x0_5"),
    "transformers": ("BertModel", "GPT2LMHeadModel", "T5ForConditionalGeneration"),
    "diffusers": ("AutoencoderTiny", "UNet2DModel", "PriorTransformer"),
}


@pytest.fixture
def doubles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a small package in the place of each real one, before them on the path."""
    folder = tmp_path / "doubles"
    for name, text in DOUBLES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    hide_packages(monkeypatch)
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] in EXPECTED]:
        del sys.modules[name]


def hide_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in EXPECTED]:
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.parametrize("package", EXPECTED)
def test_each_model_of_a_zoo_becomes_a_problem_file_of_its_own(
    package: str, doubles: Path, tmp_path: Path
) -> None:
    listing = list_zoo(package)
    assert listing.version.startswith("sha256 ")
    assert {m.name: m.family for m in listing.models} == {
        name: family for name, (family, _) in EXPECTED[package].items()
    }
    files = write_zoo_problems([package], [], tmp_path / "out")
    for file, (name, (family, text)) in zip(files, EXPECTED[package].items(), strict=True):
        assert file.name == f"{package}_{name}.py"
        assert text in read_problem(file).path.read_text()
        origin = read_zoo_origin(file)
        assert origin is not None
        assert (origin.package, origin.family, origin.model) == (package, family, name)


def test_no_part_of_a_torchvision_model_is_downloaded(doubles: Path, tmp_path: Path) -> None:
    (file,) = write_zoo_problems(["torchvision"], ["boxes"], tmp_path)
    assert "weights=None" in file.read_text()
    assert "weights_backbone=None" in file.read_text()


def test_names_and_globs_choose_models_and_problems_of_files_are_left_out(
    doubles: Path, tmp_path: Path
) -> None:
    chosen = ["tiny_*", "WORDmodel"]
    settings = Settings(zoo=["timm", "transformers"], problem=chosen, output=tmp_path, start=1)
    submission = prepare(settings, print, is_dry_run=True)
    assert [item.label for item in submission.items] == [
        "custom/timm_tiny_vit",
        "custom/transformers_WordModel",
    ]
    assert str(submission) == "timm and transformers: 2 selected, 2 to run"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"zoo": ["tim"]}, "there is no zoo 'tim'; is it timm?"),
        ({"zoo": ["timm"], "problem": ["vit"]}, "matches no model of timm; is it tiny_vit?"),
        ({"zoo": ["timm"], "level": [1]}, "--level: models of --zoo have none"),
        ({"zoo": ["timm"], "start": 3}, "--start 3 is past the end"),
        ({"zoo": ["timm"], "decomposer": "cat", "verify": False}, "--no-verify: what a --decomp"),
    ],
)
def test_a_mistake_is_one_line(
    settings: dict[str, object], message: str, doubles: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as error:
        prepare(Settings(**settings, output=tmp_path), print, is_dry_run=True)
    assert message in str(error.value)


def test_a_package_that_fails_on_import_says_why(doubles: Path) -> None:
    (doubles / "torchvision/__init__.py").write_text("raise RuntimeError('another torch')\n")
    listings = {listing.name: listing for listing in list_zoos()}
    assert listings["torchvision"].problem == "cannot be listed: RuntimeError: another torch"
    assert listings["timm"].problem is None
    with pytest.raises(UsageError, match="torchvision: cannot be listed: RuntimeError: another"):
        list_zoo("torchvision")


def test_a_package_that_is_not_installed_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.zoo.registry.is_importable", lambda name: False)
    with pytest.raises(UsageError, match=r"timm is not installed; pip install 'kdrun\[zoo\]'"):
        list_zoo("timm")


def test_another_package_registers_its_own_zoo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_models.py").write_text(
        "from kdrun.zoo import ModelRecipe, ZooModel\n"
        "def list_models():\n    return [ZooModel('wide', 'linear')]\n"
        "def find_recipe(name):\n"
        "    return ModelRecipe('torch.nn:Linear', '[8, 4]', 'float32[2,8]')\n"
    )
    metadata = tmp_path / "my_models-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: my_models\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[kdrun.zoos]\nmine = my_models\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    assert [model.name for model in list_zoo("mine").models] == ["wide"]
    (file,) = write_zoo_problems(["mine"], [], tmp_path)
    assert "return Linear(8, 4)" in file.read_text()


def test_the_command_lists_packages_and_models(doubles: Path) -> None:
    run = CliRunner().invoke
    packages = json.loads(run(cli, ["zoo", "--json"], standalone_mode=False).stdout)
    counts = {p["package"]: p["models"] for p in packages}
    assert counts == {"diffusers": 4, "timm": 3, "torchvision": 2, "transformers": 4}
    shown = run(cli, ["zoo", "timm", "--problem", "tiny_*"], standalone_mode=False)
    assert [line.split() for line in shown.stdout.splitlines()[2:4]] == [
        ["tiny_net", "tiny"],
        ["tiny_vit", "tiny"],
    ]
    assert "2 models, 1 family" in shown.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    ("package", "model"), [(p, model) for p, models in INSTALLED.items() for model in models]
)
def test_a_model_of_an_installed_package_is_written(
    package: str, model: str, tmp_path: Path
) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"needs {package}: pip install 'kdrun[zoo]'")
    try:
        (file,) = write_zoo_problems([package], [model], tmp_path)
    except UsageError as error:
        pytest.skip(f"{package} cannot be used here: {error}")
    settings = Settings(output=tmp_path, verify=False)
    result = local_execution.decompose(file, settings).result
    assert (result.status, result.figures and result.figures.capture) == ("written", "fake")
