"""Models of transformers and timm, small but of their real architecture, where those are there."""

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest
from commands import KDRUN

from runner.tree.document import Tree

SMALL = '"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2'
HEADS = f'{SMALL}, "num_attention_heads": 4'

MODELS = {
    "transformers:BertModel": (
        f'{{"transformers:BertConfig": {{"vocab_size": 512, {HEADS}}}}}',
        "input_ids=int64[2,32]<512, attention_mask=int64[2,32]=1",
    ),
    "transformers:LlamaForCausalLM": (  # its cache comes out beside the logits
        f'{{"transformers:LlamaConfig": {{"vocab_size": 512, {HEADS}, "num_key_value_heads": 2}}}}',
        "input_ids=int64[2,32]<512",
    ),
    "transformers:ViTForImageClassification": (
        f'{{"transformers:ViTConfig": {{{HEADS}, "image_size": 32, "patch_size": 8}}}}',
        "float32[2,3,32,32]",
    ),
    "timm.models:resnet18": ('{"num_classes": 10}', "float32[1,3,64,64]"),
    "timm.models.vision_transformer:VisionTransformer": (
        '{"img_size": 32, "patch_size": 8, "embed_dim": 64, "depth": 2, "num_heads": 4}',
        "float32[2,3,32,32]",
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("target", MODELS)
def test_a_librarys_model_becomes_one_file_that_equals_it(target: str, tmp_path: Path) -> None:
    library = re.split("[.:]", target)[0]
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"needs {library}, which kdrun's own environment does not have")
    init, inputs = MODELS[target]
    command = [KDRUN, "decompose", target, "--init", init, "--inputs", inputs]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done
    assert "the kernels put together equal the original to the last bit" in done.stdout
    directory = tmp_path / "output/custom" / target.partition(":")[2]
    tree = Tree.read(directory)
    assert tree.root.level == "model"
    assert re.fullmatch(r"\d[\d.]+\w*", tree.metadata.packages[library])
    text = (directory / tree.root.path).read_text()
    assert set(re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE)) == {"torch"}
    assert re.search(rf"^Source: +{library}/[\w/]+\.py, line \d+", text, re.MULTILINE)
