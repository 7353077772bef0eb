"""Whole decompositions: every file runs, and the parts compute what the original does."""

import ast
import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from models import MODELS, NO_INIT, Decomposed, output_of, runnable

from runner.emit.decomposition import capture_graph
from runner.errors import CaptureError
from runner.graph.recognition.recognize import recognize
from runner.problems import read_problem
from runner.tree.document import Tree
from runner.tree.interface import Program
from runner.tree.partition import partition
from runner.tree.workload import digest

pytestmark = pytest.mark.long


@pytest.mark.parametrize("what", MODELS)
@pytest.mark.parametrize("level", ["level1", "level2", "level3"])
def test_every_file_passes_by_itself(decomposed: Decomposed, what: str, level: str) -> None:
    directory = decomposed(MODELS[what] + NO_INIT, level)
    files = runnable(directory)
    assert directory / "verification" / "composition_test.py" in files
    assert {str(f.relative_to(directory)): output_of(f) for f in files} == {
        str(f.relative_to(directory)): "PASS" for f in files
    }


def test_a_decomposition_is_the_same_bytes_each_time(decomposed: Decomposed) -> None:
    source = MODELS["tables and constants"] + NO_INIT
    first, second = decomposed(source, into="first"), decomposed(source, into="second")
    texts = {f.relative_to(first): f.read_bytes() for f in first.rglob("*") if f.is_file()}
    assert texts == {
        f.relative_to(second): f.read_bytes() for f in second.rglob("*") if f.is_file()
    }


def test_a_decomposition_is_the_same_bytes_in_another_process(decomposed: Decomposed) -> None:
    here = decomposed(MODELS["one module called twice"] + NO_INIT)
    there = here.parent / "there"
    program = (
        "import sys; from pathlib import Path; from runner.problems import read_problem; "
        "from runner.emit import decompose; "
        "decompose(read_problem(Path(sys.argv[1])), Path(sys.argv[2]))"
    )
    problem = here.parent / "level3" / "some_model.py"
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    subprocess.run(
        [sys.executable, "-c", program, str(problem), str(there)], check=True, env=environment
    )
    for file in (f for f in here.rglob("*") if f.is_file()):
        assert file.read_bytes() == (there / file.relative_to(here)).read_bytes(), file


def test_component_files_import_torch_alone(decomposed: Decomposed) -> None:
    directory = decomposed(MODELS["attention of nn.TransformerEncoderLayer"] + NO_INIT)
    for file in directory.glob("level_*/*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                assert {alias.name.partition(".")[0] for alias in node.names} <= {"torch", "math"}
            elif isinstance(node, ast.ImportFrom):
                assert node.module == "torch"


def test_a_broken_kernel_makes_the_composition_fail(decomposed: Decomposed) -> None:
    directory = decomposed(MODELS["half precision"] + NO_INIT)
    (kernel,) = (directory / "level_0_kernel").glob("layer_norm_*.py")
    text = kernel.read_text()
    kernel.write_text(text.replace("return ", "return 1.01 * ", 1))
    assert output_of(kernel) == "PASS"
    composed = output_of(directory / "verification" / "composition_test.py")
    assert composed.startswith("AssertionError: ")


def test_a_wrong_weight_map_makes_the_step_fail(decomposed: Decomposed) -> None:
    directory = decomposed(
        """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

            def forward(self, x):
                return self.b(torch.relu(self.a(x)))

        def get_inputs(): return [torch.randn(2, 4)]
        def get_init_inputs(): return []
        """
    )
    step = next(s for s in (directory / "steps").iterdir() if "some_model" in s.name)
    weights = json.loads((step / "weight_map.json").read_text())
    swapped = {source.replace("a.", "*.").replace("b.", "a.").replace("*.", "b."): name
               for source, name in weights.items()}  # fmt: skip
    assert swapped != weights
    (step / "weight_map.json").write_text(json.dumps(swapped))
    assert output_of(step / "refactored.py").startswith("AssertionError: ")


def test_files_run_from_any_directory(decomposed: Decomposed, tmp_path: Path) -> None:
    directory = decomposed(MODELS["half precision"] + NO_INIT)
    moved = tmp_path / "elsewhere"
    directory.rename(moved)
    for file in (
        *moved.glob("steps/*/refactored.py"),
        moved / "verification" / "composition_test.py",
    ):
        ran = subprocess.run([sys.executable, str(file)], cwd="/", capture_output=True, text=True)
        assert (ran.returncode, ran.stdout.strip()) == (0, "PASS"), ran.stderr


def test_the_tree_says_what_was_written(decomposed: Decomposed) -> None:
    directory = decomposed(MODELS["attention of nn.TransformerEncoderLayer"] + NO_INIT)
    tree = Tree.read(directory)
    files = {str(f.relative_to(directory)) for f in directory.glob("level_*/*.py")}
    assert {node.path for node in tree.nodes.values()} == files
    assert tree.metadata.total_components == len(files)
    kernels = [n for n in tree.nodes.values() if n.level == "kernel"]
    assert tree.metadata.kernel_instances == len(kernels)
    assert sum(k.flops for k in kernels) == tree.root.flops > 0
    ends = {edge.source for edge in tree.data_flow} | {edge.target for edge in tree.data_flow}
    assert ends <= {n.id for n in kernels} | {"input", "output"}
    weights = {name for node in kernels for name in node.weight_map.values()}
    assert {"encoder.layers.0.self_attn.in_proj_weight", "encoder.layers.1.norm2.bias"} <= weights
    assert tree.metadata.unused_weights == []


def test_tensors_have_the_names_that_the_files_and_the_author_give_them(
    decomposed: Decomposed,
) -> None:
    directory = decomposed(
        """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = nn.Parameter(torch.ones(4).half())

            def forward(self, query, key):
                scores = query @ key.T
                best, place = (scores * self.scale).half().max(1)
                return best, place, torch.relu(query), torch.tanh(query)

        def get_inputs(): return [torch.randn(3, 8), torch.randn(4, 8)]
        def get_init_inputs(): return []
        """
    )
    tree = Tree.read(directory)
    root = tree.root
    assert root.input_shapes == {"query": [3, 8], "key": [4, 8]}
    assert list(root.output_shapes.items())[:2] == [("best", [3]), ("place", [3])]
    assert list(root.output_dtypes.values())[:2] == ["float16", "int64"]
    assert list(root.output_strides)[2:] == ["output", "output_2"]
    assert (root.weight_shapes, root.weight_dtypes) == ({"scale": [4]}, {"scale": "float16"})
    assert (root.operation, root.identity, root.family) == (None, None, None)
    for node in tree.nodes.values():
        text = (directory / node.path).read_text()
        arguments = [f"{name}: torch.Tensor" for name in node.input_shapes]
        assert f"def forward({', '.join(['self', *arguments])}):" in text
    matmul = next(node for node in tree.nodes.values() if node.operation == "matmul")
    assert list(matmul.output_shapes) == ["scores"]


@pytest.mark.parametrize(
    "what", ["attention of nn.TransformerEncoderLayer", "half precision", "recurrent layers"]
)
def test_each_kernel_file_runs_the_workload_that_the_tree_identifies(
    decomposed: Decomposed, what: str
) -> None:
    directory = decomposed(MODELS[what] + NO_INIT)
    kernels = [n for n in Tree.read(directory).nodes.values() if n.level == "kernel"]
    assert kernels
    for node in kernels:
        graph = capture_graph(read_problem(directory / node.path))
        program = Program(graph, recognize(graph))
        assert digest(program, partition(program, "level1", "kernel")) == node.identity, node.path


def test_one_weight_that_several_use_maps_to_all_their_names(decomposed: Decomposed) -> None:
    directory = decomposed(
        """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.w = nn.Parameter(torch.randn(4, 4))

            def forward(self, x):
                return torch.softmax(x @ self.w, -1) * self.w

        def get_inputs(): return [torch.randn(4, 4)]
        def get_init_inputs(): return []
        """
    )
    (step,) = (directory / "steps").iterdir()
    mapping = json.loads((step / "weight_map.json").read_text())
    assert mapping == {"w": ["matmul.w", "mul.w"]}
    assert output_of(step / "refactored.py") == "PASS"


def test_tied_weights_of_the_original_are_each_mapped(decomposed: Decomposed) -> None:
    directory = decomposed(MODELS["one weight in two places"] + NO_INIT)
    for step in (directory / "steps").iterdir():
        mapping = json.loads((step / "weight_map.json").read_text())
        original = runpy.run_path(str(step / "original.py"))["Model"]()
        assert mapping.keys() == dict(original.named_parameters(remove_duplicate=False)).keys()


def test_a_write_that_cannot_be_followed_is_refused_with_a_reason(decomposed: Decomposed) -> None:
    with pytest.raises(CaptureError, match="a write through as_strided"):
        decomposed(
            """
            class Model(nn.Module):
                def forward(self, x):
                    h = x.clone()
                    h.as_strided((2, 2), (1, 1)).add_(1.0)
                    return h

            def get_inputs(): return [torch.rand(4, 8)]
            def get_init_inputs(): return []
            """
        )


LISTS = """
class Model(nn.Module):
    def forward(self, x):
        a = x + 1
        torch._foreach_mul_([a], 0.5)
        return a

def get_inputs(): return [torch.rand(4, 8)]
def get_init_inputs(): return []
"""
NESTED = """
class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x * 2).to_padded_tensor(0.0)

def get_inputs():
    rows = [torch.randn(3, 16), torch.randn(5, 16)]
    return [torch.nested.nested_tensor(rows, layout=torch.jagged)]
def get_init_inputs(): return []
"""


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (LISTS, r"a list of tensors; write a loop with x\.mul_"),
        (NESTED, "with nested tensors; give"),
    ],
    ids=["a write into a list", "nested tensors"],
)
def test_tensors_in_one_are_refused_with_what_to_write(
    decomposed: Decomposed, source: str, reason: str
) -> None:
    with pytest.raises(CaptureError, match=reason):
        decomposed(source)


def test_what_is_computed_outside_of_torch_is_refused_with_its_line(decomposed: Decomposed) -> None:
    with pytest.raises(CaptureError, match=r"no input reaches an output through torch \(line \d+"):
        decomposed(
            """
            class Model(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.fc = nn.Linear(8, 8)

                def forward(self, x):
                    return self.fc(torch.from_numpy(x.numpy().cumsum(1)))

            def get_inputs(): return [torch.rand(4, 8)]
            def get_init_inputs(): return []
            """
        )


def test_training_mode_is_a_decomposition_of_its_own(decomposed: Decomposed) -> None:
    source = """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc, self.norm = nn.Linear(8, 8), nn.BatchNorm1d(8)

            def forward(self, x):
                return F.dropout(self.norm(self.fc(x)), 0.5, self.training)

        def get_inputs(): return [torch.randn(4, 8)]
        def get_init_inputs(): return []
        """
    directory = decomposed(source, "level2", mode="train")
    tree = Tree.read(directory)
    assert tree.metadata.mode == "train"
    assert tree.root.operations == ["linear", "batch_norm", "dropout"]
    assert {output_of(file) for file in runnable(directory)} == {"PASS"}
    assert Tree.read(decomposed(source, "level2", into="eval")).root.operations == [
        *("linear", "batch_norm")
    ]


def test_a_file_that_no_machine_can_hold_says_so(decomposed: Decomposed) -> None:
    directory = decomposed("""
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.up = nn.Linear(1 << 20, 1 << 20)
                self.down = nn.Linear(1 << 20, 8)

            def forward(self, x):
                return self.down(torch.relu(self.up(x)))

        def get_inputs():
            return [torch.randn(1, 1 << 20)]

        def get_init_inputs():
            return []
        """)
    large = "linear_1048576x1048576_on_1_fp32.py"
    files = [
        directory / "level_0_kernel" / large,
        *directory.glob("level_3_model/*.py"),
        *directory.glob("level_2_layer/*.py"),
        *directory.glob("steps/step_01_*/refactored.py"),
        directory / "verification/composition_test.py",
    ]
    assert len(files) >= 4
    for file in files:
        ran = subprocess.run([sys.executable, str(file)], cwd="/", capture_output=True, text=True)
        assert (ran.returncode, ran.stdout) == (1, "")
        said = ran.stderr.splitlines()[-1]
        assert re.match(r"AssertionError: needs 4\d{3}\.\d GiB of memory, this machine", said)
