"""Writes docs/gallery anew: takes three samples apart, and pictures what the commands say.

    make gallery

Needs a Chromium (`apt-get install chromium`). Nothing here is drawn by hand: the text is what
`kdrun` prints, the pictures are of the page that `kdrun report` writes.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
KDRUN = str(Path(sys.executable).with_name("kdrun"))

# Sample, what there is to see, the kernel to read, and the address of each picture.
SHOWN = (
    (
        "level2/residual_rms_norm",
        "One fusion of two kernels. Its author wrote a norm in five primitives. The norm is one "
        "kernel, which still runs the primitives in the author's order.",
        "rms_norm",
        {"": "The fusion: two inputs, and a residual that is also an output."},
    ),
    (
        "level3/inception_module",
        "A layer of four branches. Each branch is a straight line that a compiler could fuse. "
        "A separate kernel joins the four results.",
        "conv2d_16x32_k5p2",
        {"": "The layer: its fusions, and the shapes that flow between them."},
    ),
    (
        "level3/llama",
        "A model whose four layers are one file. kdrun recognises RMSNorm, rotary embeddings and "
        "grouped-query attention.",
        "scaled_dot",
        {
            "": "The model: an embedding, a table that it computes, one layer four times.",
            "/layers_0": "The inside of a layer.",
        },
    ),
)
RUN_PICTURES = {
    "overview": ("", "The run at a glance."),
    "workloads": ("#/workloads", "Share of the work that the largest workloads have."),
}


def main() -> None:
    labels = [label for label, *_ in SHOWN]
    with tempfile.TemporaryDirectory() as aside:
        output = Path(aside) / "output"
        for label in labels:
            kdrun("decompose", f"data/samples/{label}.py", "--output", output)
        page = Path(aside) / "gallery.html"
        kdrun("report", output, "--to", page)
        pieces = [section(*entry, output) for entry in SHOWN]
        workloads = kdrun("workloads", output, "--first", "5").replace(str(output), "output")
        pictures = {f"{name}.png": address for name, (address, _) in RUN_PICTURES.items()}
        for label, _, _, addresses in SHOWN:
            pictures |= {picture(label, tail): f"#/p/{label}{tail}" for tail in addresses}
        for old in HERE.glob("*.png"):
            old.unlink()
        take(page, pictures)
    text = (HERE / "README.in.md").read_text()
    text = text.replace("<!--problems-->", "\n".join(pieces)).replace("<!--workloads-->", workloads)
    (HERE / "README.md").write_text(text)


def section(label: str, idea: str, kernel: str, addresses: dict[str, str], output: Path) -> str:
    source = code((ROOT / f"data/samples/{label}.py").read_text())
    file = next((output / label / "level_0_kernel").glob(f"{kernel}*.py"))
    drawn = kdrun("show", output / label).rstrip()
    images = "\n\n".join(f"![{said}]({picture(label, tail)})" for tail, said in addresses.items())
    return f"""## {label}

{idea}

```python
{source}
```

```console
$ kdrun show output/{label}
{drawn}
```

{images}

One of its kernels, `{file.name}`, without its docstring and its test:

```python
{code(file.read_text())}
```
"""


def code(text: str) -> str:
    """The classes of a file, up to its inputs."""
    start = text.index("\nclass ") + 1
    end = text.index("\n\ndef get_init_inputs")
    return text[start:end].strip()


def picture(label: str, tail: str) -> str:
    return f"{label.partition('/')[2]}{tail.replace('/', '-')}.png"


def take(page: Path, pictures: dict[str, str]) -> None:
    with sync_playwright() as running:
        browser = running.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for name, address in pictures.items():
            context = browser.new_context(viewport={"width": 1360, "height": 820})
            tab = context.new_page()
            tab.goto(f"file://{page}{address}")
            tab.wait_for_selector("html[data-ready]")
            tab.wait_for_timeout(700)
            tab.screenshot(path=HERE / name)
            context.close()
        browser.close()


def kdrun(*arguments: str | Path) -> str:
    done = subprocess.run(
        [KDRUN, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout


if __name__ == "__main__":
    main()
