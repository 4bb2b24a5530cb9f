"""SQL over the tables of a tier and the record of the runs, by DuckDB."""

from __future__ import annotations

import duckdb
import pandas as pd

from moelaws.records.layout import Results
from moelaws.records.runs import all_records, flatten
from moelaws.spec.errors import UserError


def query(sql: str, results: Results, tier: str) -> pd.DataFrame:
    """Answers ``sql``, in which a study's table goes by the study's name.

    ``runs`` is the record of every run, a column for each dotted key. Nothing is written: the
    database is in memory and reads Parquet.

    Raises:
        UserError: with DuckDB's message, and the names of the tables that there are.
    """
    names = sorted(p.stem for p in results.tier(tier).table("x").parent.glob("*.parquet"))
    with duckdb.connect(":memory:") as connection:
        for name in names:
            connection.from_parquet(str(results.tier(tier).table(name))).create_view(name)
        rows = [flatten(record.as_dict()) for record in all_records(results)]
        connection.register("runs", pd.DataFrame(rows or [{"run_id": None}]))
        try:
            relation = connection.sql(sql)
            if relation is None:
                raise UserError("query: a SELECT is wanted")
            frame: pd.DataFrame = relation.df()
        except duckdb.Error as error:
            tables = ", ".join([*names, "runs"])
            raise UserError(f"query: {error}\ntables of tier {tier}: {tables}") from None
    return frame
