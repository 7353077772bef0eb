"""Work on a device that is not the CPU: a simulated one, which torch loads like a vendor's.

What runs on it holds real values, which the CPU computes; see tests/accelerator.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.batch.child.child_process import Request, close_fork_server, run_child
from tests.cli.conftest import Kdrun

pytestmark = pytest.mark.long

HERE = Path(__file__).parents[1]
SAMPLES = HERE.parent / "data/samples"
ON_DEVICE = ("--device", "accel")


@pytest.fixture(scope="module", autouse=True)
def accelerator() -> Iterator[None]:
    """Children of this process have the simulated accelerator."""
    with pytest.MonkeyPatch.context() as patch:
        close_fork_server()
        patch.setenv("PYTHONPATH", str(HERE / "accelerator"))
        yield
        close_fork_server()


@pytest.fixture
def on_device(tmp_path: Path) -> Callable[[str], Any]:
    """Run a function of tests/accelerator/on_device.py in a child."""

    def run(function: str) -> Any:
        log = tmp_path / "log"
        outcome = run_child(Request(f"on_device:{function}", "", tmp_path, log, 4 << 30, 60))
        assert outcome.answer is not None, log.read_text()
        return json.loads(outcome.answer)

    return run


@pytest.fixture(scope="module")
def silu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A decomposition of one kernel, made on the CPU."""
    from click.testing import CliRunner

    from runner.cli import cli

    place = tmp_path_factory.mktemp("made")
    arguments = ["decompose", str(SAMPLES / "level1/silu.py"), "--output", str(place)]
    assert CliRunner().invoke(cli, arguments, standalone_mode=False).return_value == 0
    return place / "level1/silu"


@pytest.mark.parametrize(
    ("sample", "options"),
    [
        ("level1/conv_transpose_2d", ["--power"]),
        ("level2/linear_dropout_softmax", ["--mode", "train"]),
        ("level3/resnet", []),
        ("level3/vit_block", []),
        ("level3/gpt_oss", ["--trials", "1"]),
        ("level3/mamba", []),
    ],
)
def test_a_sample_passes_on_a_device(kdrun: Kdrun, sample: str, options: list[str]) -> None:
    ended = kdrun("decompose", str(SAMPLES / f"{sample}.py"), *ON_DEVICE, *options)
    assert ended.code == 0, ended
    made = Path("output") / sample
    verdict = json.loads((made / "verification/test_results.json").read_text())
    assert (verdict["device"], verdict["status"]) == ("accel", "passed")
    assert verdict["arithmetic"].startswith("deterministic algorithms where torch has them")
    result = json.loads((made / "result.json").read_text())
    assert result["peak_device_bytes"] > 0
    assert " GiB on the device" in ended.err + ended.out


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("x * torch.sigmoid(x) * 1.01", "largest difference 0.0"),
        ("x * torch.sigmoid(x) + torch.zeros(x.shape)", "makes a tensor on cpu"),
    ],
)
def test_a_wrong_component_is_caught_there(
    kdrun: Kdrun, silu: Path, tmp_path: Path, wrong: str, reason: str
) -> None:
    spoiled = shutil.copytree(silu, tmp_path / "spoiled")
    (kernel,) = spoiled.glob("level_0_kernel/*.py")
    text = kernel.read_text()
    assert "x * torch.sigmoid(x)" in text
    kernel.write_text(text.replace("x * torch.sigmoid(x)", wrong))
    ended = kdrun("verify", str(spoiled), *ON_DEVICE)
    assert ended.code == 1, ended
    assert reason in ended.out


def test_a_model_that_the_device_cannot_hold_is_too_large(kdrun: Kdrun) -> None:
    large = "import torch\nfrom torch import nn\n\n\nclass Model(nn.Module):\n"
    large += "    def forward(self, x):\n        return x.exp()\n\n\n"
    large += "def get_inputs():\n    return [torch.randn(20, 1 << 20)]\n\n\n"
    large += "def get_init_inputs():\n    return []\n"
    Path("large.py").write_text(large)
    ended = kdrun("decompose", "large.py", *ON_DEVICE)
    assert ended.code == 1
    assert "too_large" in ended.out
    assert "needs more memory than the device has free: accel out of memory" in ended.out


def test_workloads_are_measured_there(kdrun: Kdrun, silu: Path) -> None:
    ended = kdrun("workloads", str(silu), "--measure", "--device", "auto", "--json")
    assert ended.code == 0, ended
    assert json.loads(ended.out)["measured_on"].startswith("simulated accelerator, torch ")


def test_tensors_of_two_devices_do_not_mix(on_device: Callable[[str], Any]) -> None:
    mixed, number, same = on_device("mix")
    assert mixed == "Expected all tensors to be on the same device"
    assert (number, same) == ([3, 3], [2, 2])


def test_the_device_has_views_tied_weights_and_gradients(on_device: Callable[[str], Any]) -> None:
    told = on_device("share")
    assert told == {"sum": 6, "one version": True, "tied": True, "gradient": "accel:0"}


def test_the_device_counts_its_memory_and_has_an_end(on_device: Callable[[str], Any]) -> None:
    one, two, error, end = on_device("allocate")
    assert one == two == end == [0, 1]
    assert error == "accel out of memory. It has 128 MiB."


def test_its_generator_is_seeded_and_set_back(on_device: Callable[[str], Any]) -> None:
    assert on_device("draw_again") == [True, True, True]


def test_inputs_keep_strides_and_shared_memory_when_they_move(
    on_device: Callable[[str], Any],
) -> None:
    same, part, wide, *zeroed, device = on_device("move")
    assert (same, part, wide) == (True, [4, 2], [0, 1])
    assert (zeroed, device) == ([0, 0], "accel:0")


def test_values_are_compared_across_devices_and_with_those_on_disk(
    on_device: Callable[[str], Any],
) -> None:
    told = on_device("compare_across")
    assert "differs by 1, 1 of 6 elements" in told.pop("wrong")
    assert told.pop("back") == "accel:0"
    assert told == {"across": True, "identical": True, "on disk": True, "digests": True}


def test_arithmetic_is_deterministic_while_it_is_judged(on_device: Callable[[str], Any]) -> None:
    assert on_device("compute_exactly") == [True, False]
