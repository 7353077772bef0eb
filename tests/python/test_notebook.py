"""docs/python.ipynb runs, and shows what it shows in the repository."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.long

NOTEBOOK = Path(__file__).parents[2] / "docs" / "python.ipynb"


def test_the_notebook_runs_and_has_its_own_outputs(tmp_path: Path) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    stored = nbformat.read(NOTEBOOK, as_version=4)
    fresh = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(
        fresh,
        timeout=300,
        # A kernel may send what a cell prints in several messages.
        coalesce_streams=True,
        resources={"metadata": {"path": str(tmp_path)}},
    ).execute()

    def texts(notebook: dict) -> list[str]:  # type: ignore[type-arg]
        outputs = [o for cell in notebook["cells"] for o in cell.get("outputs", ())]
        return [o.get("text") or o["data"]["text/plain"] for o in outputs]

    assert texts(fresh) == texts(stored)
    assert "<details" in str(stored)
