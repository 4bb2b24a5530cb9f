"""How often rules support and refute claims of simulated tables, without the effect and with it.

    python benchmarks/nulls.py [STUDY ...] [--tables 200] [--out docs/evidence/nulls.csv]
    python benchmarks/nulls.py --report

Each claim has tables of runs whose losses lack its effect, with the noise between seeds, and most
have tables with the effect as it was measured or published (tests/nulls says which). A fair rule
supports a claim in about 5 % of the tables without its effect, and refutes it in as many where the
effect is at the margin. The counts of the studies that are named replace those in the file.
``--report`` writes the file's Markdown page beside it, and computes nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from moelaws.claims.base import Verdict  # noqa: E402
from moelaws.spec.project import load_study  # noqa: E402
from nulls.trial import decided  # noqa: E402

STUDIES = sorted(path.stem for path in (ROOT / "tests/nulls").glob("[a-z]*.py"))
STUDIES = [name for name in STUDIES if name not in ("trial", "test_nulls", "test_both_verdicts")]


HEAD = """# How often rules are right

Each rule was tried on simulated tables of runs, with the noise between seeds. Without the effect, a
fair rule supports its claim in about 5 % of the tables. Where the tables lie at the edge of what is
claimed, it contradicts the claim in no more of them; where they lie beyond it, it may contradict it
in many. Where a claim has several such trials, the row shows the least favourable one. With the
effect, as it was measured here or published, the last column says how often the rule sees it. The
tables are those of `tests/nulls`. `python benchmarks/nulls.py` makes the counts, with `--report`
this page.

| study | claim | supported without the effect | contradicted without it | supported with it |
|-|-|-:|-:|-:|
"""
# The columns: of which tables, which verdict, and which of several trials is the least favourable
WORST = [
    ("null", str(Verdict.SUPPORTED), "max"),
    ("null", str(Verdict.NOT_SUPPORTED), "max"),
    ("effect", str(Verdict.SUPPORTED), "min"),
]


def verdicts(task: tuple[str, int, int]) -> list[tuple[str, str]]:
    """Returns the verdicts on the claims of a study's trial, of the table with this seed."""
    name, place, seed = task
    study, trial = load_study(name, ROOT), import_module(f"nulls.{name}").TRIALS[place]
    # Tables and fits are written below the current folder, beside a copy of the configuration.
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        shutil.copytree(ROOT / "config", "config")
        given = trial.made(seed)
        return [(claim, decided(study, claim, given)) for claim in trial.claims]


def rows(name: str, tables: int) -> list[dict[str, object]]:
    """Returns a row for each claim and trial of a study, with the counts of verdicts."""
    found = []
    with ProcessPoolExecutor() as pool:
        for place, trial in enumerate(import_module(f"nulls.{name}").TRIALS):
            if not trial.kind:
                continue
            tasks = [(name, place, seed) for seed in range(tables)]
            each = Counter(one for own in pool.map(verdicts, tasks, chunksize=4) for one in own)
            for claim in trial.claims:
                counts = {str(verdict): each[claim, verdict] for verdict in Verdict}
                about = {"study": name, "claim": claim, "tables": trial.kind}
                found.append(about | counts)
                print(*found[-1].values(), sep="  ", flush=True)
    return found


def report(counts: pd.DataFrame) -> str:
    """Returns a Markdown table with a row a claim: the worst of its trials of each kind."""
    lines = [HEAD]
    for (study, claim), own in counts.groupby(["study", "claim"], sort=True):
        n = own[list(map(str, Verdict))].sum(axis=1)
        cells = []
        for kind, verdict, worst in WORST:
            rows = own["tables"] == kind
            least = own.loc[rows, verdict].agg(worst) if rows.any() else None
            cells.append("not tried" if least is None else f"{least} of {n[rows].min()}")
        words = str(claim).replace("_", " ")
        lines.append(f"| {study} | {words} | {' | '.join(cells)} |\n")
    return "".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("studies", nargs="*", metavar="STUDY", help=", ".join(STUDIES))
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--out", type=Path, default=ROOT / "docs/evidence/nulls.csv")
    parser.add_argument("--report", action="store_true", help="write the page of the counts alone")
    given = parser.parse_args()
    if given.report:
        given.out.with_suffix(".md").write_text(report(pd.read_csv(given.out)))
        return
    studies = given.studies or STUDIES
    known = pd.read_csv(given.out) if given.out.is_file() else pd.DataFrame(columns=["study"])
    new = pd.DataFrame([row for name in studies for row in rows(name, given.tables)])
    both = pd.concat([known[~known["study"].isin(studies)], new], ignore_index=True)
    both.sort_values(["study", "claim", "tables"], kind="stable").to_csv(given.out, index=False)


if __name__ == "__main__":
    main()
