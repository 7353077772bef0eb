"""Workloads written for KernelBench, SOL-ExecBench and FlashInfer-Bench."""

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner

from runner.batch import local_execution
from runner.cli import cli
from runner.config import Settings
from runner.errors import UsageError
from runner.report.catalogue import CatalogueWorkload, collect_workloads, source_of
from runner.report.definitions import read_subject
from runner.report.export import export
from runner.report.kernel_function import rewrite_as_function
from runner.report.kernelbench import problem_text
from runner.report.subject import Subject, find_subject
from runner.report.tensor_files import write as write_safetensors

BATCH_NORM = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(num_features=4)

    def forward(self, x: torch.Tensor):
        return self.bn(x)


def get_inputs():
    return [torch.randn(8, 4)]
"""


BIASES = """
import torch
from torch import nn


class Add(nn.Module):
    def __init__(self, *shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(shape))

    def forward(self, x):
        return torch.relu(x) + self.bias


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.adds = nn.ModuleList(Add(*shape) for shape in SHAPES)

    def forward(self, x, y):
        a, b, c, d = self.adds
        return a(x), b(y), c(x), d(y)


SHAPES = ((1, 4, 1, 1), (1, 6, 1, 1), (4, 1, 1), (6, 1, 1))


def get_inputs():
    return [torch.randn(2, 4, 8, 8), torch.randn(2, 6, 8, 8)]


def get_init_inputs():
    return []
"""


@pytest.fixture(scope="module")
def subject(made: Path) -> Subject:
    return find_subject(str(made), made)


@pytest.fixture(scope="module")
def chosen(subject: Subject) -> list[CatalogueWorkload]:
    return collect_workloads(subject).workloads


@pytest.fixture(scope="module")
def exported(
    chosen: list[CatalogueWorkload], subject: Subject, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    directory = tmp_path_factory.mktemp("export") / "workloads"
    assert export(chosen, subject, directory, with_inputs=True) == []
    return directory


def index(exported: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((exported / "index.json").read_text())
    return rows


def loaded(text: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(text, "exported", "exec"), names)
    return names


def definitions(exported: Path) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    return [
        (
            json.loads((folder / "definition.json").read_text()),
            [json.loads(line) for line in (folder / "workload.jsonl").read_text().splitlines()],
        )
        for folder in sorted((exported / "sol-execbench").iterdir())
    ]


def tensors(document: dict[str, Any], workload: dict[str, Any]) -> list[torch.Tensor]:
    """Inputs, as SOL-ExecBench would make them."""
    axes = {n: a["value"] for n, a in document["axes"].items() if a["type"] == "const"}
    axes |= workload["axes"]
    if "custom_inputs_entrypoint" in document:
        make = loaded(document["reference"])[document["custom_inputs_entrypoint"]]
        made = make(axes, torch.device("cpu"))
        return [made[name] for name in document["inputs"]]
    return [
        torch.randn([axes[a] for a in spec["shape"]]).to(getattr(torch, spec["dtype"]))
        for spec in document["inputs"].values()
    ]


def test_every_workload_is_in_every_format(exported: Path, chosen: list[CatalogueWorkload]) -> None:
    rows = index(exported)
    assert [row["id"] for row in rows] == [row.id for row in chosen]
    assert all((exported / "kernelbench" / row["kernelbench"]).is_file() for row in rows)
    lines = [line for _, workloads in definitions(exported) for line in workloads]
    assert len({line["uuid"] for line in lines}) == len(lines) == len(chosen)
    flashinfer = list((exported / "flashinfer-bench/workloads").rglob("*.jsonl"))
    assert sum(len(path.read_text().splitlines()) for path in flashinfer) == len(chosen)


def test_kernelbench_files_are_numbered_problems_that_run(exported: Path) -> None:
    files = sorted((exported / "kernelbench/level1").glob("*.py"))
    assert {int(path.name.split("_")[0]) for path in files} == set(range(1, len(files) + 1))
    for path in files:
        names = loaded(path.read_text())
        model = names["Model"](*names["get_init_inputs"]())
        model(*names["get_inputs"]())


def test_definitions_name_every_axis_and_take_what_run_takes(exported: Path) -> None:
    for document, workloads in definitions(exported):
        specs = {**document["inputs"], **document["outputs"]}
        assert {axis for spec in specs.values() for axis in spec["shape"]} == set(document["axes"])
        assert not set(document["axes"]) & set(specs)
        tree = ast.parse(document["reference"])
        run = next(f for f in tree.body if isinstance(f, ast.FunctionDef) and f.name == "run")
        assert [argument.arg for argument in run.args.args] == list(document["inputs"])
        varying = {n for n, axis in document["axes"].items() if axis["type"] == "var"}
        for workload in workloads:
            assert set(workload["axes"]) == varying
            assert set(workload["inputs"]) == set(document["inputs"])


def test_a_reference_computes_what_the_component_does(
    exported: Path, chosen: list[CatalogueWorkload], subject: Subject
) -> None:
    of = {row["id"]: row["definition"] for row in index(exported)}
    documents = {document["name"]: (document, lines) for document, lines in definitions(exported)}
    for row in chosen:
        document, workloads = documents[of[row.id]]
        read_again = read_subject(row, source_of(row, subject))
        workload = next(w for w in workloads if _fits(document, w, read_again))
        given = tensors(document, workload)
        model = loaded(read_again.source)["Model"]().eval()
        weights = {
            tensor.weight: value
            for tensor, value in zip(read_again.inputs, given, strict=True)
            if tensor.weight
        }
        inputs = [v for t, v in zip(read_again.inputs, given, strict=True) if not t.weight]
        expected = torch.func.functional_call(model, weights, tuple(inputs))
        assert torch.equal(loaded(document["reference"])["run"](*given), expected), row.name


def _fits(document: dict[str, Any], workload: dict[str, Any], subject: Any) -> bool:
    shapes = [list(tensor.shape) for tensor in subject.inputs]
    return [list(t.shape) for t in tensors(document, workload)] == shapes


def test_sizes_that_vary_within_a_family_are_axes(exported: Path) -> None:
    shared = [(d, w) for d, w in definitions(exported) if len(w) > 1]
    assert shared, "the samples have linears of several sizes"
    for document, workloads in shared:
        assert "custom_inputs_entrypoint" not in document
        assert len({json.dumps(w["axes"], sort_keys=True) for w in workloads}) == len(workloads)


def test_weights_of_other_ranks_are_other_definitions(tmp_path: Path) -> None:
    problem = tmp_path / "biases.py"
    problem.write_text(BIASES)
    made = local_execution.decompose(problem, Settings(output=tmp_path / "output", trials=1))
    assert made.result.status == "passed", made.result.reason
    about = find_subject(str(made.directory), tmp_path / "output")
    export(collect_workloads(about).workloads, about, tmp_path / "export")
    adds = [d for d, _ in definitions(tmp_path / "export") if d["name"].startswith("add")]
    assert sorted(len(d["inputs"]["bias"]["shape"]) for d in adds) == [3, 4]


def test_flashinfer_files_name_their_definition_and_blobs_that_exist(exported: Path) -> None:
    root = exported / "flashinfer-bench"
    for path in (root / "workloads").rglob("*.jsonl"):
        for line in path.read_text().splitlines():
            record = json.loads(line)
            folder = path.parent.name
            assert (root / f"definitions/{folder}/{record['definition']}.json").is_file()
            assert (record["solution"], record["evaluation"]) == (None, None)
            for given in record["workload"]["inputs"].values():
                assert given["type"] in ("random", "safetensors")
                if given["type"] == "safetensors":
                    assert (root / given["path"]).is_file()


def test_inputs_are_stored_only_where_that_is_asked_for(
    exported: Path, chosen: list[CatalogueWorkload], subject: Subject, tmp_path: Path
) -> None:
    (note,) = export(chosen, subject, tmp_path / "to")
    kept = {path.name for path in (tmp_path / "to").rglob("*")}
    left = {path.name for path in exported.rglob("*")} - kept
    assert [name for name in left if name.endswith(".safetensors")]
    assert not [name for name in kept if name.endswith(".safetensors")]
    without = {path.name.removesuffix(".safetensors") for path in exported.rglob("*.safetensors")}
    assert re.match(rf"{len(without)} definitions? (is|are) not in flashinfer-bench/", note)
    definitions = {
        path.stem for path in (tmp_path / "to/flashinfer-bench/definitions").rglob("*.json")
    }
    assert definitions | without == {path.name for path in (exported / "sol-execbench").iterdir()}
    assert not definitions & without


@pytest.mark.parametrize("level", ["fusion", "layer"])
def test_fusions_and_layers_are_exported_as_kernels_are(
    subject: Subject, tmp_path: Path, level: Any
) -> None:
    rows = collect_workloads(subject, level).workloads
    export(rows, subject, tmp_path / "to")
    for row in rows:
        text = source_of(row, subject).read_text()
        (line,) = (e for e in index(tmp_path / "to") if e["id"] == row.id)
        folder = tmp_path / "to/sol-execbench" / line["definition"]
        document = json.loads((folder / "definition.json").read_text())
        workload = json.loads((folder / "workload.jsonl").read_text().splitlines()[0])
        given = dict(zip(document["inputs"], tensors(document, workload), strict=True))
        read_again = read_subject(row, source_of(row, subject))
        weights = {t.weight: given[t.name] for t in read_again.inputs if t.weight}
        inputs = [given[t.name] for t in read_again.inputs if not t.weight]
        with torch.no_grad():
            expected = torch.func.functional_call(
                loaded(text)["Model"]().eval(), weights, tuple(inputs)
            )
            assert torch.equal(loaded(document["reference"])["run"](*given.values()), expected)


def test_the_same_workloads_are_written_the_same_way_again(
    exported: Path, chosen: list[CatalogueWorkload], subject: Subject, tmp_path: Path
) -> None:
    export(chosen, subject, tmp_path / "again", with_inputs=True)
    for path in exported.rglob("*"):
        if path.is_file():
            other = tmp_path / "again" / path.relative_to(exported)
            assert path.read_bytes() == other.read_bytes(), path


def test_the_statistics_of_a_batch_norm_are_no_random_values(made: Path, output: Path) -> None:
    function = rewrite_as_function(
        BATCH_NORM, ["bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"], "eval"
    )
    assert function is not None
    assert "F.batch_norm(x, running_mean, running_var, weight, bias)" in function.text
    assert rewrite_as_function(BATCH_NORM, ["bn.weight"], "train") is None


def test_a_module_whose_mode_matters_keeps_the_mode_that_it_ran_in() -> None:
    text = problem_text(BATCH_NORM, "eval")
    assert loaded(text)["Model"]().training is False
    assert problem_text(BATCH_NORM, "train") == BATCH_NORM
    plain = BATCH_NORM.replace("BatchNorm1d(num_features=4)", "Linear(4, 4)")
    assert problem_text(plain, "eval") == plain


def test_drawn_tensors_are_where_the_header_says(tmp_path: Path) -> None:
    values = {"ids": torch.tensor([[3, 1], [2, 0]]), "half": torch.ones(3).bfloat16().t()}
    write_safetensors(values, tmp_path / "drawn")
    data = (tmp_path / "drawn").read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    assert header["ids"] == {"dtype": "I64", "shape": [2, 2], "data_offsets": [0, 32]}
    assert header["half"] == {"dtype": "BF16", "shape": [3], "data_offsets": [32, 38]}
    assert (len(data) - 8 - length, (8 + length) % 8) == (38, 0)
    ids = torch.frombuffer(bytearray(data[8 + length :][:32]), dtype=torch.int64)
    assert ids.tolist() == [3, 1, 2, 0]


def test_a_directory_that_holds_something_is_not_written_into(
    chosen: list[CatalogueWorkload], subject: Subject, tmp_path: Path
) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(UsageError, match="not empty; choose a new directory"):
        export(chosen, subject, tmp_path)


def test_the_command_exports_what_was_chosen(made: Path, tmp_path: Path) -> None:
    to = tmp_path / "out"
    done = CliRunner().invoke(
        cli,
        ["workloads", str(made), "--operation", "softmax", "--export", str(to), "--with-inputs"],
        standalone_mode=False,
    )
    assert done.exception is None
    assert {row["operation"] for row in index(to)} == {"softmax"}
