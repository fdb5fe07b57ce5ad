"""Reads the tables of results with pandas, polars and DuckDB, and holds them against the report.

python check_tables.py FOLDER...
"""

import json
import sys
from pathlib import Path

import duckdb
import pandas
import polars
import pyarrow.parquet


def near(one, other):
    return abs(one - other) <= 1e-9 * max(abs(one), abs(other), 1e-12)


def check(folder):
    report = json.loads((folder / "report.json").read_text())["strategies"][0]
    path = str(folder / "sessions.parquet")
    frames = pandas.read_parquet(path), polars.read_parquet(path)
    with duckdb.connect() as database:
        names = [row[0] for row in database.execute(f"describe select * from '{path}'").fetchall()]
        rows = database.execute(f"select count(*) from '{path}'").fetchone()[0]
        assert rows == len(frames[0]) == frames[1].height, path
        assert names == list(frames[0].columns) == frames[1].columns, path
        described = json.loads(pyarrow.parquet.read_metadata(path).metadata[b"agent-sim.columns"])
        assert list(described) and set(described) == set(names), path
        checked = 0
        for name, figures in report["metrics"].items():
            if name not in names:
                continue
            means = frames[0][name].mean(), frames[1][name].mean(), database.execute(f"select avg({name}) from '{path}'").fetchone()[0]
            # a fleet's mean is that of its replications' means
            if "fleet" not in report:
                assert all(near(mean, figures["mean"]) for mean in means), (name, means, figures["mean"])
                # the report's percentile is the nearest rank
                ranks = frames[1][name].quantile(0.99, "equiprobable"), database.execute(f"select quantile_disc({name}, 0.99) from '{path}'").fetchone()[0]
                assert all(near(exact, figures["p99"]) for exact in ranks), (name, ranks, figures["p99"])
            checked += 1
        assert checked > 1, path
        ended = dict(database.execute(f"select outcome, count(*) from '{path}' group by 1").fetchall())
        assert all(ended.get(outcome, 0) == count for outcome, count in report["outcomes"].items()), (ended, report["outcomes"])
        for other in ("turns", "fleet"):
            table = folder / f"{other}.parquet"
            if table.exists():
                count = database.execute(f"select count(*) from '{table}'").fetchone()[0]
                assert count == polars.read_parquet(table).height == len(pandas.read_parquet(table)) > 0, table
    print(f"{folder}: {rows} rows, {checked} metrics agree in pandas, polars and DuckDB")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        check(Path(argument))
