"""One model at five batch sizes: its kernels are families, and each family is one definition."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner

from runner.batch import local_execution
from runner.batch.child.child_process import close_fork_server
from runner.cli import cli
from runner.config import Settings
from runner.problems.variants import write_one_variant
from runner.report.catalogue import collect_workloads, source_of
from runner.report.export import export
from runner.report.subject import Subject, find_subject

ATTENTION = """
import torch
import torch.nn.functional as F
from torch import nn

batch_size = 4


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.qkv = nn.Linear(16, 48)

    def forward(self, x):
        batch, tokens, width = x.shape
        q, k, v = self.qkv(self.norm(x)).view(batch, tokens, 3, 2, 8).permute(2, 0, 3, 1, 4)
        x = F.scaled_dot_product_attention(q, k, v)
        return x.transpose(1, 2).reshape(batch, tokens, width)


def get_inputs():
    return [torch.randn(batch_size, 6, 16)]


def get_init_inputs():
    return []
"""
SIZES = (1, 2, 4, 8, 16)


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    folder = tmp_path_factory.mktemp("families")
    file = folder / "attention.py"
    file.write_text(ATTENTION)
    settings = Settings(output=folder / "output", trials=1)
    for size in SIZES:
        values = {} if size == 4 else {"batch_size": [str(size)]}  # 4 is the file's own
        variant = write_one_variant(file, values, [], settings.output)
        result = local_execution.decompose(variant, settings).result
        assert result.status == "passed", result.reason
    close_fork_server()
    return find_subject(str(settings.output), settings.output)


@pytest.fixture(scope="module", params=["kernel", "fusion"])
def exported(
    request: pytest.FixtureRequest, subject: Subject, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    to = tmp_path_factory.mktemp(request.param) / "to"
    export(collect_workloads(subject, request.param).workloads, subject, to, with_inputs=True)
    return to


def definitions(exported: Path) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    return [
        (
            json.loads(path.read_text()),
            [
                json.loads(line)
                for line in path.with_name("workload.jsonl").read_text().splitlines()
            ],
        )
        for path in sorted(exported.glob("sol-execbench/*/definition.json"))
    ]


def test_each_family_is_one_definition_whose_axis_is_the_varied_constant(exported: Path) -> None:
    assert definitions(exported)
    for document, workloads in definitions(exported):
        varied = {name for name, axis in document["axes"].items() if axis["type"] == "var"}
        assert varied == {"batch"}
        assert sorted(workload["axes"]["batch"] for workload in workloads) == [*SIZES]


def test_the_definition_computes_what_the_component_of_each_size_does(
    exported: Path, subject: Subject
) -> None:
    entries = json.loads((exported / "index.json").read_text())
    catalogue = collect_workloads(subject, entries[0]["level"])
    rows = {row.id: row for row in catalogue.workloads}
    for document, workloads in definitions(exported):
        made: dict[str, Any] = {}
        exec(document["reference"], made)
        members = [rows[e["id"]] for e in entries if e["definition"] == document["name"]]
        for row, workload in zip(members, workloads, strict=True):
            component: dict[str, Any] = {}
            exec(source_of(row, subject).read_text(), component)
            model, inputs = component["Model"]().eval(), component["get_inputs"]()
            weights = [model.state_dict()[name] for name in row.weight_shapes]
            with torch.no_grad():
                expected = model(*inputs)
            assert torch.equal(made["run"](*inputs, *weights), expected)
            if "make_inputs" in made:
                drawn = made["make_inputs"](workload["axes"], "cpu")
                tensors = zip(drawn.values(), [*inputs, *weights], strict=True)
                assert all(d.shape == t.shape and d.stride() == t.stride() for d, t in tensors)


def test_flashinfer_bench_loads_the_families_and_runs_them_on_inputs_of_its_own(
    exported: Path,
) -> None:
    # Without its dependencies, which need CUDA: `pip install --no-deps flashinfer-bench
    # docstring-parser`.
    data = pytest.importorskip("flashinfer_bench.data", reason="flashinfer-bench is not installed")
    inputs = pytest.importorskip("flashinfer_bench.bench.utils")
    loaded = data.TraceSet.from_path(str(exported / "flashinfer-bench"))
    assert set(loaded.definitions) == {d["name"] for d, _ in definitions(exported)}
    for name, definition in loaded.definitions.items():
        assert definition.var_axes == ["batch"]
        assert sorted(t.workload.axes["batch"] for t in loaded.workloads[name]) == [*SIZES]
        made: dict[str, Any] = {}
        exec(definition.reference, made)
        for workload in (trace.workload for trace in loaded.workloads[name]):
            stored = inputs.load_safetensors(definition, workload, loaded.root)
            output = made["run"](*inputs.gen_inputs(definition, workload, "cpu", stored))
            assert output.shape[0] == workload.axes["batch"]


def test_a_family_shows_its_shapes(subject: Subject) -> None:
    asked = ["workloads", str(subject.place), "--families", "--operation", "linear"]
    lines = CliRunner().invoke(cli, asked).output.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("batch"))
    assert [line.split()[:2] for line in lines[start + 2 : start + 7]] == [
        [str(size), f"{size}x6x16"] for size in SIZES
    ]
