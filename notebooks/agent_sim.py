"""What the notebooks need: the agent-sim binary, and its tables as polars frames."""

import io
import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import polars as pl

ROOT = Path(__file__).resolve().parent.parent
BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#5a5a5a"


def binary() -> str:
    """`AGENT_SIM`, the repository's own build, or what is installed."""
    built = [ROOT / "target" / profile / "agent-sim" for profile in ("release", "debug")]
    candidates = [os.environ.get("AGENT_SIM"), *map(str, built), shutil.which("agent-sim")]
    for candidate in candidates:
        if candidate and Path(candidate).exists():
            return candidate
    raise FileNotFoundError("agent-sim isn't built: run `cargo build --release`, or set AGENT_SIM to its path")


def command(*arguments: str) -> str:
    """Standard output of `agent-sim ARGUMENTS`; its own message where it refuses."""
    plain = {key: value for key, value in os.environ.items() if key not in ("CLICOLOR_FORCE", "FORCE_COLOR")}
    done = subprocess.run([binary(), *map(str, arguments)], capture_output=True, text=True, cwd=ROOT, env=plain | {"NO_COLOR": "1", "COLUMNS": "100"})
    if done.returncode not in (0, 3):
        raise RuntimeError(done.stderr)
    return done.stdout


@dataclass
class Results:
    """What `-o` wrote."""

    report: dict
    sessions: pl.DataFrame
    turns: pl.DataFrame | None
    fleet: pl.DataFrame | None


def _results(report_name: str, *arguments: str) -> Results:
    with tempfile.TemporaryDirectory() as folder:
        command(*arguments, "-o", folder)
        table = lambda name: pl.read_parquet(path) if (path := Path(folder, f"{name}.parquet")).exists() else None
        report = json.loads(Path(folder, report_name).read_text())
        return Results(report, table("sessions"), table("turns"), table("fleet"))


def run(scenario: str, *arguments: str) -> Results:
    """`agent-sim run SCENARIO ARGUMENTS -o …`"""
    return _results("report.json", "run", scenario, *arguments)


def compare(scenario: str, *arguments: str) -> Results:
    """`agent-sim compare SCENARIO ARGUMENTS -o …`: every strategy on the same sessions."""
    return _results("compare.json", "compare", scenario, *arguments)


def sweep(scenario: str, *arguments: str) -> pl.DataFrame:
    """`agent-sim sweep SCENARIO ARGUMENTS --format csv`: a row a point and figure."""
    text = command("sweep", scenario, *arguments, "--format", "csv")
    return pl.read_csv(io.StringIO(text), infer_schema_length=None)


def scenario(text: str) -> str:
    """Writes a scenario to a file of its own and returns its path."""
    folder = Path(tempfile.mkdtemp(prefix="agent-sim-"))
    path = folder / "scenario.toml"
    path.write_text(text)
    return str(path)


def axes(ylabel: str, xlabel: str, title: str):
    """A picture of the house's look."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(8, 4.5))
    axis.set(ylabel=ylabel, xlabel=xlabel, xmargin=0.02)
    axis.set_title(title, loc="left")
    axis.grid(color="#e1e1e1")
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    return axis
