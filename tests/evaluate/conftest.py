"""One decomposed model, and a folder for solutions, for the tests of `kdrun evaluate`."""

from pathlib import Path

import pytest
from solution_files import PROBLEM

from runner.emit import decompose
from runner.problems import read_problem
from runner.tree.document import Tree


@pytest.fixture(scope="session")
def decomposed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a model with two blocks, whose values have heavy tails."""
    directory = tmp_path_factory.mktemp("output") / "custom" / "heavy_tails"
    decompose(read_problem(PROBLEM), directory)
    return directory


@pytest.fixture(scope="session")
def names(decomposed: Path) -> dict[str, str]:
    """The components' names, by their first word or two."""
    stems = {Path(node.path).stem for node in Tree.read(decomposed).nodes.values()}
    heads = {stem.partition("_8x32x64")[0].partition("_8x32x16")[0]: stem for stem in stems}
    heads["down"] = next(stem for stem in stems if stem.startswith("linear_128x64"))
    heads["swiglu"] = next(stem for stem in stems if stem.startswith("swiglu"))
    heads["head"] = next(stem for stem in stems if stem.startswith("linear_64x16"))
    return heads
