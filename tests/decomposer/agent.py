"""A decomposer that needs no model: a command that does one of the things that agents do.

python agent.py BEHAVIOUR GOOD {output}: GOOD is a decomposition that passes.
"""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

RELU = "relu_2x4x6x6_fp32.py"
FUSION = "conv2d_relu_3x4_k3_on_2x8x8_fp32.py"


def copy(good: Path, output: Path) -> None:
    shutil.copytree(good, output, dirs_exist_ok=True)


def edit(output: Path, name: str, old: str, new: str) -> None:
    """In every copy of a file."""
    for path in output.rglob(name):
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))


def improves(good: Path, output: Path, brief: str) -> None:
    """Wrong at first; right once the brief says what was wrong."""
    copy(good, output)
    told = brief.partition("# Round 2 of 3")[2]
    if not told:
        edit(output, RELU, "return F.relu(x)", "return F.relu(x) * 2")
    else:
        assert f"level_0_kernel/{RELU}" in told
        assert "output differs" in told or "missing" in told or "more than one" in told


def never_learns(good: Path, output: Path, brief: str) -> None:
    copy(good, output)
    edit(output, RELU, "return F.relu(x)", "return F.relu(x) * 2")


def hangs(good: Path, output: Path, brief: str) -> None:
    """With a grandchild in a session of its own."""
    program = "import time; time.sleep(600)"
    left = subprocess.Popen([sys.executable, "-c", program], start_new_session=True)
    (good.parent / "grandchild").write_text(str(left.pid))
    time.sleep(600)


def hangs_when_done(good: Path, output: Path, brief: str) -> None:
    copy(good, output)
    time.sleep(600)


def crashes(good: Path, output: Path, brief: str) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def does_nothing(good: Path, output: Path, brief: str) -> None:
    pass


def fails(good: Path, output: Path, brief: str) -> None:
    print("I could not do it")
    sys.exit(3)


def stops_half_way(good: Path, output: Path, brief: str) -> None:
    copy(good, output)
    shutil.rmtree(output / "steps")
    shutil.rmtree(output / "verification")


def passes_the_model_off_as_a_kernel(good: Path, output: Path, brief: str) -> None:
    copy(good, output)
    shutil.rmtree(output / "steps")
    shutil.rmtree(output / "level_0_kernel")
    (output / "level_1_fusion").rename(output / "level_0_kernel")
    edit(output, "composition_test.py", "conv2d_3x4_k3_on_2x8x8_fp32", FUSION.removesuffix(".py"))
    edit(output, "composition_test.py", '"conv.conv2d.', '"conv.conv.')
    edit(output, "composition_test.py", "x = self.relu(x)", "pass")
    edit(output, "composition_test.py", 'kernel("relu_2x4x6x6_fp32")', "nn.Identity")
    tree = json.loads((good / "decomposition_tree.json").read_text())
    root = tree["nodes"]["root"] | {"level": "kernel", "children": []}
    root |= {"path": f"level_0_kernel/{FUSION}"}
    (output / "decomposition_tree.json").write_text(json.dumps({"nodes": {"root": root}}))


def swaps_the_original(good: Path, output: Path, brief: str) -> None:
    """For another problem, which is decomposed well."""
    copy(good, output)
    for path in output.rglob("*.py"):
        path.write_text(path.read_text().replace("F.relu(x)", "F.silu(x)"))
    edit(output, FUSION, "F.relu(", "F.silu(")
    edit(output / "steps", "original.py", "F.relu(", "F.silu(")
    original = output / "original.py"
    original.write_text(original.read_text().replace("torch.relu(", "torch.nn.functional.silu("))
    tree = json.loads((output / "decomposition_tree.json").read_text())
    tree["metadata"]["source_sha256"] = hashlib.sha256(original.read_bytes()).hexdigest()
    (output / "decomposition_tree.json").write_text(json.dumps(tree))


def says_little(good: Path, output: Path, brief: str) -> None:
    """In the tree: no more than the brief asks for."""
    copy(good, output)
    tree = json.loads((good / "decomposition_tree.json").read_text())
    kept = ("level", "path", "children", "input_shapes", "output_shapes")
    kept = (*kept, "input_dtypes", "output_dtypes")
    nodes = {n: {key: node[key] for key in kept} for n, node in tree["nodes"].items()}
    (output / "decomposition_tree.json").write_text(json.dumps({"nodes": nodes}))


def links(good: Path, output: Path, brief: str) -> None:
    copy(good, output)
    kernel = output / "level_0_kernel" / RELU
    kernel.unlink()
    kernel.symlink_to(good / "level_0_kernel" / RELU)


def writes_outside(good: Path, output: Path, brief: str) -> None:
    copy(good, output)
    (output.parent.parent / "mine.txt").write_text("here I am")
    (good.parent / "level2/conv_relu.py").write_text("x = 1\n")


def floods(good: Path, output: Path, brief: str) -> None:
    for n in range(20_100):
        (output / f"{n}").touch()
    time.sleep(600)


def tells_its_environment(good: Path, output: Path, brief: str) -> None:
    copy(good, output)
    seen = dict(os.environ) | {"cwd": str(Path.cwd()), "argv": sys.argv[1:]}
    (output / "seen.json").write_text(json.dumps(seen))
    print("my key is", os.environ.get("MODEL_API_KEY"))


def main() -> None:
    behaviour, good, output = sys.argv[1:4]
    globals()[behaviour](Path(good), Path(output), sys.stdin.read())


if __name__ == "__main__":
    main()
