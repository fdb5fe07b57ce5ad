"""Runs every notebook from start to end and stops at the first that fails, or whose texts are other than those it has.

python execute.py [FOLDER]     writes them with their outputs into the folder; without one into this one
"""

import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent


def texts(notebook):
    """What each cell printed, pictures apart."""
    found = []
    for cell in notebook.cells:
        outputs = cell.get("outputs", [])
        found.append("\n".join(output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs))
    return found


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    folder.mkdir(parents=True, exist_ok=True)
    notebooks = sorted(HERE.glob("*.ipynb"))
    if not notebooks:
        sys.exit("there are no notebooks")
    for path in notebooks:
        started = time.monotonic()
        notebook = nbformat.read(path, as_version=4)
        before = texts(notebook)
        NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(HERE)}}).execute()
        for cell in notebook.cells:
            # when a cell ran says nothing to the reader
            cell.metadata.pop("execution", None)
        nbformat.write(notebook, folder / path.name)
        if folder != HERE and texts(notebook) != before:
            old = next(pair for pair in zip(before, texts(notebook)) if pair[0] != pair[1])
            sys.exit(f"{path.name} prints something else than it shows; `python notebooks/execute.py` renews it:\n{old[0]}\n---\n{old[1]}")
        print(f"{path.name}: {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
