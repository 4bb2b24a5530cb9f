"""A table of a user's with anything in it: a fit of it ends in an answer or in one clear line."""

import random

import numpy as np
import pandas as pd
import pytest
from hostile_outcome import CASES, command, judged, outcome

import moelaws.fitting.fit  # noqa: F401 - read once, for the many processes forked from this one

pytestmark = pytest.mark.slow

CELLS = [
    *("", " ", "NaN", "inf", "-inf", "-1", "0", "-0.0", "1e400", "1e-400", "9" * 5000, "1e9.5"),
    *("abc", "1,5", "1 000", "0x1F", "1_000", "=SUM(A1)", "'5", '"', '""', "№", "\u0663", "\x00"),
    *("2020-99-99", "True", "None", "1e9 FLOP", "[1]", "{}", "x" * 100_000, "\r", "\n", "\ufeff"),
]
VALUES = [
    *(float("nan"), float("inf"), -1.0, 0.0, 1e300, 1e-300, None, "x", True, 10**18, [1], b"\xff"),
]
NAMES = [
    *("", " ", "l", "loss", "N ", "\u039d", "D", "L", "x" * 10_000, "a,b", '"', "\n", "\x00"),
    *("{a}", "__class__", "seed", "C", "S", "run_id"),
]
MARKS = [
    *(b"\x00", b"\xff\xfe", b'"', b",,,", b"\n", b"\r", b"\t", b";", b"{", b"[" * 2000, b"#"),
    b"\xef\xbb\xbf",
]


def frame():
    """Losses of a law of Chinchilla's form, with noise."""
    chance = np.random.default_rng(0)
    N, D = np.meshgrid(np.geomspace(1e6, 1e9, 6), np.geomspace(1e8, 1e11, 6))
    L = 1.7 + 400 / N**0.34 + 410 / D**0.28 + chance.normal(0, 0.01, N.shape)
    return pd.DataFrame({"N": N.ravel(), "D": D.ravel(), "L": L.ravel()})


def cell(table, chance, values):
    table = table.astype(object)
    place = chance.randrange(len(table)), chance.randrange(table.shape[1])
    table.iat[place] = chance.choice(values)
    return table


def column(table, chance, values):
    return table.assign(**{chance.choice(list(table)): chance.choice(values)})


def scaled(table, chance, values):
    name = chance.choice(list(table))
    return table.assign(**{name: table[name] * chance.choice((-1, 0, 1e-30, 1e30, 1e300))})


def rearranged(table, chance, values):
    """A column renamed, left out or there twice; few rows, or one again and again."""
    name = chance.choice(list(table))
    return chance.choice((
        table.rename(columns={name: chance.choice(NAMES)}),
        table.drop(columns=name),
        pd.concat([table, table[[name]]], axis=1),
        table.head(chance.randrange(8)),
        pd.concat([table.head(1)] * len(table)),
    ))  # fmt: skip


CHANGES = (*[cell] * 3, column, *[rearranged] * 5, scaled)


def separated(mark):
    return lambda table: table.to_csv(index=False, sep=mark).encode("utf-8", "surrogatepass")


FORMATS = {
    ".csv": separated(","),
    ".tsv": separated("\t"),
    ".jsonl": lambda table: table.to_json(orient="records", lines=True).encode(),
    ".parquet": lambda table: table.to_parquet(index=False),
}


def spoilt(data, chance):
    """The bytes of a whole file with a piece of something else in them, or cut."""
    place = chance.randrange(len(data))
    if chance.random() < 0.3:
        return data[:place]
    return data[:place] + chance.choice(MARKS) + data[place + chance.choice((0, 0, 1, 50)) :]


def hostile(suffix, chance):
    """What was done to a table, and the file's bytes."""
    if chance.random() < 0.3:
        return "spoilt", spoilt(FORMATS[suffix](frame()), chance)
    change = chance.choice(CHANGES)
    values = CELLS if suffix in (".csv", ".tsv") else VALUES
    while True:
        try:
            return change.__name__, FORMATS[suffix](change(frame(), chance, values))
        except Exception:  # what this format cannot hold, such as two types in a Parquet column
            change = chance.choice(CHANGES)


@pytest.mark.parametrize("suffix", FORMATS)
def test_tables_of_users(tmp_path, suffix):
    chance = random.Random(suffix)
    path = tmp_path / f"losses{suffix}"
    words = ("--law", "chinchilla", "--sample", "20", "--bootstrap", "3", "--json")
    for number in range(max(3, CASES // 8)):
        change, data = hostile(suffix, chance)
        path.write_bytes(data)
        judged(f"{number} {change} {data[:300]!r}", outcome(command(tmp_path, "fit", path, *words)))
