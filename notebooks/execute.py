"""Runs every notebook from start to end and stops at the first that fails.

python execute.py [FOLDER]     writes them with their outputs into the folder; without one into this one
"""

import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    folder.mkdir(parents=True, exist_ok=True)
    notebooks = sorted(HERE.glob("*.ipynb"))
    if not notebooks:
        sys.exit("there are no notebooks")
    for path in notebooks:
        started = time.monotonic()
        notebook = nbformat.read(path, as_version=4)
        NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(HERE)}}).execute()
        for cell in notebook.cells:
            # when a cell ran says nothing to the reader
            cell.metadata.pop("execution", None)
        nbformat.write(notebook, folder / path.name)
        print(f"{path.name}: {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
