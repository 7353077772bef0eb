"""Names and numbers that nothing can have end in one line that names the file and the reason."""

import pytest
from changing_files import COMPOSED, TREE, at_import


def first_failure(verification):
    assert verification.first_failure is not None
    return verification.first_failure


@pytest.mark.parametrize("odd", ["\\ud800", "\\u0000", "\\u001b[2J"])
def test_a_path_that_no_file_has(odd, fusion, judged):
    path = "level_0_kernel/relu.py"
    fusion.write(TREE, fusion.read(TREE).replace(path, f"level_0_kernel/{odd}relu.py"))

    failure = first_failure(judged(fusion, trials=1))

    assert "decomposition_tree.json: node 'root.relu': no file is called" in failure
    assert failure.isprintable()


def test_a_size_that_no_tensor_has(fusion, judged):
    fusion.write(TREE, fusion.read(TREE).replace("[2, 4, 6, 6]", f"[2, 4, 6, {10**400}]"))

    assert "a shape has a size that no tensor can have" in first_failure(judged(fusion, trials=1))


def test_nodes_that_share_their_children_do_not_multiply(fusion, judged):
    def change(tree):
        names = ("root", "layer", "fused", "root.relu")
        for level, name, child in zip((3, 2, 1), names, names[1:], strict=False):
            kind = ("fusion", "layer", "model")[level - 1]
            node = tree["nodes"]["root"] | {"id": name, "level": kind}
            tree["nodes"][name] = node | {"children": [child] * 2000}

    fusion.edit_tree(change)

    assert "more than one" in first_failure(judged(fusion, trials=1))


def test_a_sum_that_never_ends(fusion, judged):
    at_import(fusion, f"N = {' + '.join(['0'] * 2500)}")

    failure = first_failure(judged(fusion, trials=1))

    assert "relu.py: holds an expression that is nested too deeply" in failure


def test_what_a_terminal_would_obey_is_escaped(fusion, judged):
    fusion.edit_tree(lambda tree: tree["nodes"]["root"].update(children=["x\x1b[2J"]))
    fusion.edit_tree(lambda tree: tree["nodes"].update({"x\x1b[2J": tree["nodes"]["root.relu"]}))

    assert first_failure(judged(fusion, trials=1)).isprintable()


def test_a_module_with_the_name_of_the_judges_own_attribute(fusion, judged):
    fusion.edit(
        COMPOSED, "self.relu = Relu()", "self.relu = Relu()\n        self.kdrun_link = Relu()"
    )

    assert "a module is called kdrun_link" in first_failure(judged(fusion, trials=1))


def test_a_number_that_python_does_not_write_in_digits(fusion, judged):
    fusion.write(COMPOSED, f"{fusion.read(COMPOSED)}\nMOST = 0x{'f' * 8000}\n")

    assert "a number of 32000 bits" in first_failure(judged(fusion, trials=1))
