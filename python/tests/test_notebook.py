"""The tutorial's notebook runs, and shows what it says."""

import pytest


def test_the_tutorial(root):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    notebook = nbformat.read(root / "docs/tutorial/python.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    pages = [output["data"]["text/html"] for output in shown if "text/html" in output.get("data", {})]
    assert "<svg" in pages[0] and any("O_acc" in page for page in pages) and any("predicted" in page for page in pages)
    assert any("did you mean" in output.get("text", "") and "^" in output["text"] for output in shown)
