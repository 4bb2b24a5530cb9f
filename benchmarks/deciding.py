"""Which sweep of one GPU would decide each claim: the cheapest whose simulated tables support it.

    python benchmarks/deciding.py [[STUDY:]CLAIM ...] [--tables 40] [--out FILE.csv]
    python benchmarks/deciding.py --report

Sweeps have one to four budgets of 3e14 FLOPs a run upwards, and one to four seeds of each run. They
are tried in the order of their FLOPs, on tables with the effect that the question states and with
the noise between seeds. The first one that supports the claim in 80 % of its tables decides. Where
none does, the row is of the one that supported it most often. The rows of the claims that are named
replace those in the file. ``--report`` writes the file's Markdown page beside it, and computes
nothing. ``deciding_questions.py`` has the questions.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "benchmarks")]
from deciding_questions import QUESTIONS  # noqa: E402
from moelaws.claims.base import Verdict  # noqa: E402
from moelaws.records.memory import keep_freed_memory  # noqa: E402
from moelaws.spec.errors import UserError  # noqa: E402
from moelaws.spec.project import load_study  # noqa: E402
from nulls.trial import decided  # noqa: E402

SURE = 0.8  # of the tables
# What the first sweep on an H200 took (docs/speed.md): FLOPs a second of eight runs at a time, and
# the seconds that a run waits beside its steps
RATE, WAIT = 1e14, 8.6 / 8
BUDGETS = [(3e14,), (3e14, 1e15), (3e14, 1e15, 3e15), (3e14, 1e15, 3e15, 1e16)]
SEEDS = (1, 2, 3, 4)


def verdicts(
    question: int, budgets: tuple[float, ...], seeds: int, seed: int
) -> tuple[list[str], float, int]:
    """Returns the verdicts on a question's claims, with the FLOPs and the number of the runs."""
    own = QUESTIONS[question]
    study = load_study(own.study, ROOT)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        shutil.copytree(ROOT / "config", "config")
        try:
            given = own.made(seed, budgets, seeds)
            said = [str(decided(study, claim, given)) for claim in own.claims]
        except UserError:  # so few runs determine no curve
            return [str(Verdict.CANNOT_TELL)] * len(own.claims), np.nan, 0
    runs = given if isinstance(given, pd.DataFrame) else given.frame
    return said, float(runs["C"].sum()), len(runs)


def rows(place: int, tables: int) -> Iterator[dict[str, object]]:
    """Yields a row for each claim: the cheapest sweep that decides it, or the nearest to it."""
    question = QUESTIONS[place]
    best: dict[str, dict[str, object]] = {}
    with ProcessPoolExecutor(initializer=keep_freed_memory) as pool:
        for budgets, seeds in sorted(product(BUDGETS, SEEDS), key=lambda s: sum(s[0]) * s[1]):
            one = partial(verdicts, place, budgets, seeds)
            said, flops, n = zip(*pool.map(one, range(tables), chunksize=4), strict=True)
            cost = {"runs": n[0], "FLOPs": flops[0], "seconds": flops[0] / RATE + n[0] * WAIT}
            grid = {"budgets": " ".join(f"{C:g}" for C in budgets), "seeds": seeds}
            for claim, own in zip(question.claims, zip(*said, strict=True), strict=True):
                supported = own.count(str(Verdict.SUPPORTED))
                about = {"study": question.study, "claim": claim}
                about |= {"effect": question.effect, "values": question.values}
                row = about | grid | cost | {"supported": supported, "tables": tables}
                before = best.setdefault(claim, row)["supported"]
                if before < min(SURE * tables, supported):
                    best[claim] = row
            if all(row["supported"] >= SURE * tables for row in best.values()):
                break
    yield from best.values()


HEAD = """# What would decide

For each claim this is the cheapest sweep of one GPU that would decide it, by simulation. Runs have
budgets of 3e14 to 1e16 FLOPs, the effect that the third column states, and a noise between seeds
of 0.3 % of the loss. It decides where the rule supports the claim in 80 % of the tables or more.
Hours are of one H200 that trains eight runs at a time, at [the speed of the first such
sweep](../speed.md). Where no sweep of up to four budgets and four seeds decides, the row shows the
one that came nearest. Where a table takes long to make, there are fewer than 40. `python
benchmarks/deciding.py` makes the rows; claims that it does not name were not simulated.

| study | claim | effect | sweep | runs | FLOPs | hours | supported |
|-|-|-|-|-:|-:|-:|-:|
"""


def report(found: pd.DataFrame) -> str:
    """Returns a Markdown table with a row a claim, those first that are decided for least."""
    lines = [HEAD]
    decided = found["supported"] >= SURE * found["tables"]
    ordered = found.assign(open=~decided).sort_values(["open", "FLOPs"], kind="stable")
    for _, row in ordered.iterrows():
        sweep = f"{row['values']} at {', '.join(str(row['budgets']).split())}"
        sweep += f"; seeds: {row['seeds']}"
        share = f"{row['supported']} of {row['tables']}"
        cost = f"{row['runs']} | {row['FLOPs']:.1e} | {row['seconds'] / 3600:.2f}"
        cells = [row["study"], row["claim"].replace("_", " "), row["effect"], sweep, cost]
        lines.append(f"| {' | '.join(cells)} | {'none decides: ' * row['open']}{share} |\n")
    return "".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("claims", nargs="*", metavar="[STUDY:]CLAIM")
    parser.add_argument("--tables", type=int, default=40)
    parser.add_argument("--out", type=Path, default=ROOT / "docs/evidence/deciding.csv")
    parser.add_argument("--report", action="store_true", help="write the page of the table alone")
    given = parser.parse_args()
    if given.report:
        given.out.with_suffix(".md").write_text(report(pd.read_csv(given.out)))
        return
    keys = ["study", "claim"]
    for place, question in enumerate(QUESTIONS):
        names = {*question.claims, *(f"{question.study}:{claim}" for claim in question.claims)}
        if not set(given.claims or names) & names:
            continue
        known = pd.read_csv(given.out) if given.out.is_file() else pd.DataFrame(columns=keys)
        both = pd.concat([known, pd.DataFrame(rows(place, given.tables))], ignore_index=True)
        both = both.drop_duplicates(keys, keep="last").convert_dtypes()
        both.sort_values(keys).to_csv(given.out, index=False)


if __name__ == "__main__":
    main()
