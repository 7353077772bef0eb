"""Choosing problems: where they lie, in which order, and what cannot be meant."""

from pathlib import Path

import pytest

from runner.errors import UsageError
from runner.problems import data_root, find_labels, select_problems
from runner.problems.selection import DataRoot, describe_origin, select_problem

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
    return [p.name for p in select_problems(root, *args, **kwargs)]  # type: ignore[arg-type]


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
        ("*resnet*", ["9_ResNet"]),
        ("LLAMA", ["llama"]),
        ("Level2/*GELU", ["2_Gemm_Gelu"]),
        ("data/level3/9_*", ["9_ResNet"]),
        ("data/9_resnet", ["9_ResNet"]),
        ("level3/21", ["21_ViT"]),
        ("l*", ["llama"]),
        ("*0", ["block_10"]),
        ("10", ["10_Softmax"]),
    ],
)
def test_a_glob_matches_names(root: DataRoot, pattern: str, expected: list[str]) -> None:
    assert names(root, patterns=[pattern]) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("Silu", ["Silu"]),
        ("silu.py", ["silu"]),
        ("SILU", ["Silu", "silu"]),
        ("s*", ["Silu", "silu"]),
        ("level1/silu", ["silu"]),
    ],
)
def test_a_name_as_it_is_written_comes_before_the_same_in_another_case(
    root: DataRoot, pattern: str, expected: list[str]
) -> None:
    for name in ("Silu", "silu"):
        (root.path / "level1" / f"{name}.py").write_text(f"# {name}\n")
    assert names(root, [1], patterns=[pattern]) == expected


@pytest.mark.parametrize("text", ["x" * 300, "~nobody_of_this_name/x.py"])
def test_what_cannot_be_a_path_is_one_line(root: DataRoot, text: str) -> None:
    assert f"--problem {text}: " in refusal(root, patterns=[text])


def test_globs_add_up_and_each_problem_comes_once(root: DataRoot) -> None:
    assert names(root, patterns=["*Relu", "2_*"]) == ["2_Relu", "1_Conv_Relu", "2_Gemm_Gelu"]


def test_a_glob_stays_within_the_levels(root: DataRoot) -> None:
    assert names(root, [1], ["*Relu"]) == ["2_Relu"]


def test_a_path_adds_a_file_from_anywhere(
    root: DataRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text("# mine\n")
    monkeypatch.chdir(tmp_path)
    problems = select_problems(root, [1], ["1_*", "mine.py"])
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


def test_a_start_past_the_end_is_refused(root: DataRoot) -> None:
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
    assert [p.source_level for p in select_problems(level)] == ["level2", "level2"]


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


@pytest.fixture
def beside(root: DataRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DataRoot:
    """KernelBench, with the samples beside it."""
    samples = tmp_path / "data/samples/level3"
    samples.mkdir(parents=True)
    for name in ("resnet", "vit_block", "llama"):
        (samples / f"{name}.py").write_text(f"# the sample {name}\n")
    kernelbench = tmp_path / "data/kernelbench"
    kernelbench.mkdir()
    for level in NAMES:
        (root.path / level).rename(kernelbench / level)
    monkeypatch.chdir(tmp_path)
    return data_root()


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*resnet*", ["kernelbench/level3/9_ResNet"]),
        ("resnet", ["samples/level3/resnet"]),
        ("vit_block", ["samples/level3/vit_block"]),
        ("level3/vit_block", ["samples/level3/vit_block"]),
        ("samples/vit_block", ["samples/level3/vit_block"]),
        ("samples/level3/VIT*", ["samples/level3/vit_block"]),
        ("llama", ["kernelbench/level3/llama"]),
        ("samples/llama", ["samples/level3/llama"]),
        ("kernelbench/9_resnet", ["kernelbench/level3/9_ResNet"]),
        ("samples/*", [f"samples/level3/{name}" for name in ("llama", "resnet", "vit_block")]),
    ],
)
def test_samples_stay_reachable_by_name_beside_the_dataset(
    beside: DataRoot, pattern: str, expected: list[str]
) -> None:
    found = [p.path.parts[-3:] for p in select_problems(beside, patterns=[pattern])]
    assert ["/".join(parts).removesuffix(".py") for parts in found] == expected


def test_all_problems_beside_the_samples_are_the_dataset(beside: DataRoot) -> None:
    assert {p.path.parts[-3] for p in select_problems(beside)} == {"kernelbench"}
    assert "data/samples" not in str(data_root(Path("data/kernelbench")).samples)


def test_a_sample_and_a_problem_of_one_level_and_name_are_refused(beside: DataRoot) -> None:
    assert "have the same level and name" in refusal(beside, patterns=["llama", "samples/llama"])


def test_where_the_selected_problems_lie_is_said(beside: DataRoot, tmp_path: Path) -> None:
    data = tmp_path / "data"
    (tmp_path / "mine.py").touch()

    def said(*patterns: str) -> str:
        return describe_origin(beside, select_problems(beside, patterns=patterns))

    assert said("9_*") == f"KernelBench in {data / 'kernelbench'}"
    assert said("vit*") == f"the samples in {data / 'samples'}"
    assert said("9_*", "vit_block") == (
        f"KernelBench in {data / 'kernelbench'} and the samples in {data / 'samples'}"
    )
    assert said("mine.py") == "1 file named by path"
    samples = data / "samples"
    assert said("mine.py", "vit*") == f"the samples in {samples} and 1 file named by path"
    relative = data_root(Path("data/samples"))
    assert describe_origin(relative, select_problems(relative)) == "problems in data/samples"


def test_what_nobody_has_is_looked_for_in_both(beside: DataRoot) -> None:
    assert refusal(beside, patterns=["vit_blok"]) == (
        f"--problem vit_blok: matches none of the 10 problems in DATA or of the 3 problems in "
        f"{beside.path.parent / 'samples'}; is it vit_block?"
    )


def test_a_name_whose_file_lies_here_is_asked_for(
    beside: DataRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vit_blok.py").touch()
    assert refusal(beside, patterns=["vit_blok"]).endswith("; is it the file vit_blok.py?")


def test_one_problem_is_found_or_the_several_are_listed(beside: DataRoot) -> None:
    assert select_problem("*VIT", beside).name == "21_ViT"
    with pytest.raises(UsageError) as caught:
        select_problem("level2/*", beside)
    assert str(caught.value) == (
        "level2/*: means 2 problems: level2/1_Conv_Relu, level2/2_Gemm_Gelu; name one of them"
    )


def test_a_label_is_named_as_a_file_is() -> None:
    label = "level3/9_ResNet18"
    for pattern in ("9_resnet18", "level3/9_ResNet18", "*RESNET*", "9", "LEVEL3/*"):
        assert find_labels([label], pattern) == [label]
    for pattern in ("samples/*resnet*", "kernelbench/level3/9", "Samples/9_resnet18.py"):
        assert find_labels([label], pattern) == [label]
    for pattern in ("", ".", "resnet18", "level2/*", "samples/", "l*"):
        assert find_labels([label], pattern) == []
    assert find_labels(["custom/odd[1]"], "odd[1].py") == ["custom/odd[1]"]


def test_without_the_dataset_the_samples_are_used_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("runner.problems.selection.KERNELBENCH", Path("data/not_fetched"))
    found = data_root()
    assert (found.kind, found.levels()) == ("samples", [1, 2, 3])
    assert str(found).startswith("the samples in ")
