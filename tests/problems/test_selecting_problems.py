"""Choosing problems: where they lie, in which order, and what cannot be meant."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from runner.errors import UsageError
from runner.problems import DataRoot, data_root, select

NAMES = {
    "level1": ["1_Matmul", "2_Relu", "10_Softmax"],
    "level2": ["1_Conv_Relu", "2_Gemm_Gelu"],
    "level3": ["9_ResNet", "21_ViT", "llama", "block_2", "block_10"],
}


@pytest.fixture
def root(tmp_path: Path) -> DataRoot:
    for level, names in NAMES.items():
        folder = tmp_path / "data" / level
        folder.mkdir(parents=True)
        for name in names:
            (folder / f"{name}.py").write_text(f"# {name}\n")
        (folder / "__init__.py").write_text("")
        (folder / "notes.txt").write_text("not a problem")
    return data_root(tmp_path / "data")


def names(root: DataRoot, *args: object, **kwargs: object) -> list[str]:
    return [p.name for p in select(root, *args, **kwargs)]  # type: ignore[arg-type]


def refusal(root: DataRoot, *args: object, **kwargs: object) -> str:
    with pytest.raises(UsageError) as caught:
        names(root, *args, **kwargs)
    assert "\n" not in str(caught.value)
    return str(caught.value).replace(str(root.path), "DATA")


def test_all_come_by_level_then_number_then_name(root: DataRoot) -> None:
    assert names(root) == [
        *("1_Matmul", "2_Relu", "10_Softmax", "1_Conv_Relu", "2_Gemm_Gelu"),
        *("9_ResNet", "21_ViT", "block_2", "block_10", "llama"),
    ]


def test_levels_narrow_and_may_be_several(root: DataRoot) -> None:
    assert names(root, [2]) == ["1_Conv_Relu", "2_Gemm_Gelu"]
    assert names(root, [2, 1, 2])[:4] == ["1_Matmul", "2_Relu", "10_Softmax", "1_Conv_Relu"]


def test_start_counts_from_zero_over_the_sorted_selection(root: DataRoot) -> None:
    assert names(root, [1], start=1, count=1) == ["2_Relu"]
    assert names(root, [1], start=2) == ["10_Softmax"]
    assert names(root, [1], count=99) == ["1_Matmul", "2_Relu", "10_Softmax"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*Relu", ["2_Relu", "1_Conv_Relu"]),
        ("llama", ["llama"]),
        ("llama.py", ["llama"]),
        ("level2/*", ["1_Conv_Relu", "2_Gemm_Gelu"]),
        ("level1/2_Relu.py", ["2_Relu"]),
        ("[12]_*", ["1_Matmul", "2_Relu", "1_Conv_Relu", "2_Gemm_Gelu"]),
    ],
)
def test_a_glob_matches_names(root: DataRoot, pattern: str, expected: list[str]) -> None:
    assert names(root, patterns=[pattern]) == expected


def test_globs_add_up_and_each_problem_comes_once(root: DataRoot) -> None:
    assert names(root, patterns=["*Relu", "2_*"]) == ["2_Relu", "1_Conv_Relu", "2_Gemm_Gelu"]


def test_a_glob_stays_within_the_levels(root: DataRoot) -> None:
    assert names(root, [1], ["*Relu"]) == ["2_Relu"]


def test_a_path_adds_a_file_from_anywhere(
    root: DataRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text("# mine\n")
    monkeypatch.chdir(tmp_path)
    problems = select(root, [1], ["1_*", "mine.py"])
    assert [(p.source_level, p.name) for p in problems] == [
        ("level1", "1_Matmul"),
        ("custom", "mine"),
    ]


def test_a_broken_file_is_selected_and_stops_no_other(root: DataRoot) -> None:
    (root.path / "level1" / "3_Latin.py").write_bytes(b"\xe9")
    assert names(root, [1]) == ["1_Matmul", "2_Relu", "3_Latin", "10_Softmax"]


def test_an_unknown_level_is_refused(root: DataRoot) -> None:
    assert refusal(root, [4]) == "there is no level 4; the levels are 1, 2 and 3"


def test_a_level_that_is_not_there_is_refused(root: DataRoot, tmp_path: Path) -> None:
    for level in ("level2", "level3"):
        for file in (root.path / level).glob("*.py"):
            file.unlink()
    assert refusal(root, [2]) == "no level 2 in DATA; it has 1"


def test_a_glob_that_matches_nothing_suggests_what_was_meant(root: DataRoot) -> None:
    assert refusal(root, patterns=["*nothing*"]) == (
        "--problem *nothing*: matches none of the 10 problems in DATA"
    )
    assert refusal(root, patterns=["resnet"]) == (
        "--problem resnet: matches none of the 10 problems in DATA; is it 9_ResNet?"
    )


def test_a_glob_that_matches_in_another_level_says_where(root: DataRoot) -> None:
    assert refusal(root, [1, 2], ["llama"]) == (
        "--problem llama: matches nothing in level 1, 2, though level3/llama would do"
    )


def test_a_path_to_no_file_is_refused(root: DataRoot) -> None:
    assert "no such file" in refusal(root, patterns=["some/where.py"])


def test_a_directory_is_no_problem(root: DataRoot, tmp_path: Path) -> None:
    assert "is a directory" in refusal(root, patterns=[str(tmp_path)])


def test_numbers_that_select_nothing_are_refused(root: DataRoot) -> None:
    assert refusal(root, start=-1) == "--start -1 is negative; it counts from 0"
    assert refusal(root, count=0) == "--count 0 selects nothing; it is 1 or more"
    assert refusal(root, [2], start=2) == "--start 2 is past the end: 2 problems selected"


def test_two_files_that_would_be_written_to_one_place_are_refused(
    root: DataRoot, tmp_path: Path
) -> None:
    paths = [tmp_path / folder / "same.py" for folder in ("a", "b")]
    for path in paths:
        path.parent.mkdir()
        path.write_text(f"# {path.parent.name}\n")
    assert "have the same level and name" in refusal(root, patterns=[str(p) for p in paths])
    paths[1].write_text(paths[0].read_text())
    assert names(root, patterns=[str(p) for p in paths]) == ["same"]


def test_a_directory_of_problems_may_be_flat(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("")
    flat = data_root(tmp_path)
    assert (flat.kind, flat.flat, flat.levels()) == ("directory", True, [])
    assert names(flat) == ["one"]
    assert refusal(flat, [1]) == "no level 1 in DATA; it has only problems of no level"


def test_a_level_folder_is_a_flat_directory_of_that_level(root: DataRoot) -> None:
    level = data_root(root.path / "level2")
    assert (level.flat, level.levels()) == (True, [2])
    assert [p.source_level for p in select(level)] == ["level2", "level2"]


def test_a_kernelbench_checkout_is_a_directory_of_problems(root: DataRoot) -> None:
    checkout = root.path.parent / "checkout"
    checkout.mkdir()
    root.path.rename(checkout / "KernelBench")
    assert data_root(checkout).path == checkout / "KernelBench"


@pytest.mark.parametrize("what", ["missing", "file", "empty"])
def test_a_data_directory_that_is_none_is_refused(tmp_path: Path, what: str) -> None:
    path = tmp_path / what
    if what == "file":
        path.write_text("")
    if what == "empty":
        path.mkdir()
    with pytest.raises(UsageError, match=f"--data {path}: "):
        data_root(path)


def test_the_dataset_comes_before_the_samples(
    root: DataRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    root.path.rename(tmp_path / "kernelbench")
    root.path.mkdir()
    (tmp_path / "kernelbench").rename(root.path / "kernelbench")
    found = data_root()
    assert (found.kind, found.path) == ("kernelbench", tmp_path / "data/kernelbench")
    assert str(found) == f"KernelBench in {found.path}"


def test_without_the_dataset_the_samples_are_used_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("runner.problems.selection.KERNELBENCH", Path("data/not_fetched"))
    found = data_root()
    assert (found.kind, found.levels()) == ("samples", [1, 2, 3])
    assert str(found).startswith("the samples in ")


def test_an_installed_kdrun_brings_its_samples_and_the_manifest(tmp_path: Path) -> None:
    """A wheel has data/ inside the package: what pyproject's force-include puts there."""
    checkout = Path(__file__).parents[2]
    package = tmp_path / "site" / "runner"
    shutil.copytree(checkout / "runner" / "problems", package / "problems")
    for name in ("__init__.py", "errors.py"):
        shutil.copy(checkout / "runner" / name, package / name)
    shutil.copytree(checkout / "data/samples", package / "_data/samples")
    shutil.copy(checkout / "data/manifest.txt", package / "_data/manifest.txt")
    code = (
        "from runner.problems import data_root, dataset, select\n"
        "root = data_root(); print(root.kind, root.path, len(dataset.manifest()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == f"samples {package / '_data/samples'} 250"
