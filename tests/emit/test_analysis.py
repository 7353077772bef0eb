"""The analysis page and the log of decisions, as they are written for whole models."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from models import Decomposed

from runner.emit import decompose
from runner.problems import read_problem
from runner.tree.document import Tree

DATA = Path(__file__).parents[2] / "data"
REAL = DATA / "kernelbench/level3"
LONGEST = ("7_GoogleNetInceptionV1", "22_EfficientNetB0", "16_DenseNet201")


def page_of(directory: Path) -> str:
    return (directory / "decomposition_analysis.md").read_text(encoding="utf-8")


def log_of(directory: Path) -> dict:
    return json.loads((directory / "decomposition_log.json").read_text(encoding="utf-8"))


def section(page: str, title: str) -> str:
    return page.split(f"## {title}\n")[1].split("\n## ")[0]


@pytest.fixture(scope="module")
def gpt_oss(decomposed_sample: Callable[[str], Path]) -> Path:
    return decomposed_sample("level3/gpt_oss")


# --- what the model is ----------------------------------------------------------------------------


def test_the_page_begins_with_what_the_model_is(gpt_oss: Path) -> None:
    title, _, paragraph = page_of(gpt_oss).splitlines()[:3]
    assert title == "# gpt_oss"
    assert paragraph.startswith(
        "A decoder of 4 `TransformerBlock` layers (2 with a window of 16), in bfloat16 and float32"
        ": embeddings of 1,024 entries of width 256; "
        "causal attention of 8 heads for 2 key heads of width 32 over 2 × 64 positions; "
        "rotary positions; a mixture of 8 experts, 2 for each token."
    )


def test_the_verdict_stands_below_it_and_waits_for_verification(gpt_oss: Path) -> None:
    lines = page_of(gpt_oss).splitlines()
    assert lines[4:7] == ["<!-- verification -->", "Not verified.", "<!-- end of verification -->"]


def test_a_convolutional_network_is_told_by_its_windows_and_resolutions(
    decomposed: Decomposed,
) -> None:
    directory = decomposed(
        """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.first = nn.Conv2d(3, 8, 3, padding=1)
                self.second = nn.Conv2d(8, 16, 3, stride=2, padding=1, groups=8)
                self.head = nn.Linear(16, 5)

            def forward(self, x):
                x = torch.relu(self.second(torch.relu(self.first(x))))
                return self.head(x.mean((2, 3)))

        def get_inputs(): return [torch.randn(2, 3, 16, 16)]
        def get_init_inputs(): return []
        """
    )
    assert (
        "A convolutional network in float32: 2 convolutions of 3x3 (1 depthwise); "
        "resolution (most channels) 16x16 (8) → 8x8 (16). "
        "Kernels: conv2d, relu, conv2d, relu, mean, linear."
    ) in page_of(directory)


@pytest.mark.parametrize(
    ("forward", "level", "paragraph"),
    [
        (
            "F.max_pool2d(x, 3, stride=2)",
            "level1",
            "One operation, `max_pool2d` (kernel_size 3x3, stride 2x2",
        ),
        ("x.exp().sum(1)", "level2", "A fusion of 2 operations, in float32. Kernels: exp, sum."),
    ],
)
def test_what_is_less_than_a_model_is_told_by_its_operations(
    decomposed: Decomposed, forward: str, level: str, paragraph: str
) -> None:
    directory = decomposed(
        f"""
        class Model(nn.Module):
            def forward(self, x):
                return {forward}

        def get_inputs(): return [torch.randn(2, 3, 16, 16)]
        def get_init_inputs(): return []
        """,
        level,
    )
    assert page_of(directory).splitlines()[2].startswith(paragraph)


def test_parameters_are_counted_once_and_in_bytes(decomposed: Decomposed) -> None:
    directory = decomposed(
        """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.embedding = nn.Embedding(10, 4)
                self.head = nn.Linear(4, 10, bias=False)
                self.head.weight = self.embedding.weight
                self.norm = nn.LayerNorm(4)

            def forward(self, ids):
                return self.head(self.norm(self.embedding(ids)))

        def get_inputs(): return [torch.randint(0, 10, (2, 3))]
        def get_init_inputs(): return []
        """
    )
    assert "- weights: 48 parameters, 192 B of float32\n" in page_of(directory)


# --- tables ---------------------------------------------------------------------------------------


def test_kernels_stand_by_their_share_of_the_work(gpt_oss: Path) -> None:
    rows = re.findall(r"^\| \[.*", section(page_of(gpt_oss), "Kernels"), re.MULTILINE)
    cells = [row.split(" | ") for row in rows]
    shares = [max(float(cell[4][:-1]), float(cell[6][:-1])) for cell in cells]
    assert shares == sorted(shares, reverse=True)
    tree = Tree.read(gpt_oss)
    assert len(rows) == tree.metadata.unique_kernels == 15  # no row says "1 more"


def test_files_beyond_the_largest_are_summed_up(decomposed_sample: Callable[[str], Path]) -> None:
    rows = section(page_of(decomposed_sample("level3/resnet")), "Kernels").splitlines()
    more = next(row for row in rows if row.startswith("| 8 more | "))
    shares = [row.split(" | ")[4] for row in rows if row.startswith("| [")]
    shares.append(more.split(" | ")[3])
    assert sum(float(share[:-1]) for share in shares) == pytest.approx(100, abs=0.5)
    assert "in all" in more


def test_the_flow_of_one_layer_is_told_from_kernel_to_kernel(gpt_oss: Path) -> None:
    flow = section(page_of(gpt_oss), "Data flow of `layers_0`")
    assert re.search(r"^\| router \| \w+ 128x256 of moe\.norm \| \w+ 128x8 \|$", flow, re.MULTILINE)
    assert flow.count("→ output") == 1


def test_a_result_has_the_name_by_which_its_own_readers_know_it(
    decomposed_sample: Callable[[str], Path],
) -> None:
    """Three linear layers share a file, which knows one name: that of its first instance."""
    page = page_of(decomposed_sample("level3/llama"))
    flow = section(page, "Data flow of `layers_0`")
    gives = {row.split(" | ")[0][2:]: row.split(" | ")[2] for row in flow.splitlines()[4:]}
    assert gives["wk"] == "k 2x128x128 |"
    assert gives["wv"] == "v 2x128x128 |"
    assert "8 heads for 4 key heads of width 32" in page


# --- what eval mode leaves out --------------------------------------------------------------------

DROPS = """
    class Sometimes(nn.Module):
        def forward(self, x):
            return x * torch.rand(1) if self.training else x

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
            self.drops = nn.ModuleList(nn.Dropout(0.2) for _ in range(3))
            self.none = nn.Dropout(0.0)
            self.path = Sometimes()
            self.norm = nn.BatchNorm1d(8)
            self.auxiliary = nn.Sequential(nn.Linear(8, 8))

        def forward(self, x):
            for layer, drop in zip(self.layers, self.drops):
                x = drop(layer(x))
            x = self.norm(self.path(self.none(x)))
            return F.dropout(x, 0.3, self.training) + 1

    def get_inputs(): return [torch.randn(4, 8)]
    def get_init_inputs(): return []
"""


def test_dropouts_that_eval_mode_turns_off_are_listed(decomposed: Decomposed) -> None:
    left_out = section(page_of(decomposed(DROPS)), "What eval mode leaves out")
    assert left_out.strip().splitlines() == [
        "- dropout p=0.2 × 3: `drops.*`",
        "- dropout p=0.3 × 1: `forward`",
        "- batch statistics: batch_norm × 1 takes its running mean and variance",
        "- Sometimes × 1, of which no operation runs: `path`",
        "- Sequential × 1, of which no operation runs: `auxiliary`",
    ]


def test_training_leaves_no_dropout_out(decomposed: Decomposed) -> None:
    page = page_of(decomposed(DROPS.replace("torch.rand(1)", "2"), mode="train"))
    assert "dropout p=" not in page
    assert "batch statistics" not in page


# --- the log --------------------------------------------------------------------------------------


def test_the_log_gives_one_reason_for_each_node_of_the_tree(gpt_oss: Path) -> None:
    told = [node for entry in log_of(gpt_oss)["levels"] for node in entry["nodes"]]
    assert sorted(told) == sorted(Tree.read(gpt_oss).nodes)


def test_the_log_says_each_reason_once(gpt_oss: Path) -> None:
    levels = log_of(gpt_oss)["levels"]
    reasons = [(entry["level"], entry["why"]) for entry in levels]
    assert len(reasons) == len(set(reasons)) < 25


def test_the_log_names_every_component(gpt_oss: Path) -> None:
    log = log_of(gpt_oss)
    named = [name for entry in log["names"] for name in entry["components"]]
    files = {Path(node.path).stem for node in Tree.read(gpt_oss).nodes.values()}
    assert sorted(named) == sorted(files)
    assert {entry["component"] for entry in log["kernels"]} == {
        path.stem for path in (gpt_oss / "level_0_kernel").glob("*.py")
    }


def test_the_log_lists_each_dropout_with_its_line(decomposed: Decomposed) -> None:
    dropped = log_of(decomposed(DROPS))["dropped"]
    assert [(entry["p"], entry["module"]) for entry in dropped] == [
        *((0.2, f"drops.{n}") for n in range(3)),
        (0.0, "none"),
        (0.3, ""),
    ]
    assert all(isinstance(entry["source_line"], int) for entry in dropped)


# --- of real models -------------------------------------------------------------------------------


@pytest.mark.parametrize("sample", ["resnet", "swin", "unet", "mobilenet"])
def test_the_page_of_a_model_is_read_in_two_minutes(
    sample: str, decomposed_sample: Callable[[str], Path]
) -> None:
    directory = decomposed_sample(f"level3/{sample}")
    page = page_of(directory)
    assert page.count("\n") < 112
    links = re.findall(r"\]\(([^)]+)\)", page)
    assert all((directory / link).exists() for link in links)


@pytest.mark.parametrize("problem", LONGEST[:2])
def test_the_page_of_a_real_model_is_short(problem: str, tmp_path: Path) -> None:
    if not (REAL / f"{problem}.py").exists():
        pytest.skip("the real dataset is not here")
    decompose(read_problem(REAL / f"{problem}.py"), tmp_path)
    assert page_of(tmp_path).count("\n") < 112
