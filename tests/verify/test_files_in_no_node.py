"""A component file that the tree does not list is told, and does not run."""

import pytest
from changing_files import RELU

ENDLESS = "import torch\nN = sum(1 for n in range(10**15))\n"


@pytest.mark.parametrize("folder", ["level_0_kernel", "level_2_layer"])
def test_it_is_told_without_being_run(folder, fusion, judged, complaints):
    spare = f"{folder}/spare.py"
    fusion.write(spare, fusion.read(RELU).replace("import torch\n", ENDLESS, 1))

    said = complaints(judged(fusion, trials=1), "rules")

    assert said[spare] == (
        "failed: is in no node of decomposition_tree.json: list it there, or delete the file"
    )


def test_many_of_them_take_no_time(fusion, judged):
    text = fusion.read(RELU)
    for n in range(400):
        fusion.write(f"level_0_kernel/spare_{n}.py", f"# {n}\n{text}")

    verification = judged(fusion, trials=1)

    assert verification.status == "failed"
    assert sum(verification.seconds.values()) < 20
