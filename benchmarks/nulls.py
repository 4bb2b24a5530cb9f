"""How often rules support and refute claims of simulated tables, without the effect and with it.

    python benchmarks/nulls.py [STUDY[:CLAIM] ...] [--missing] [--tables 200] [--out FILE.csv]
    python benchmarks/nulls.py --report

Each claim has tables of runs whose losses lack its effect, with the noise between seeds, and most
have tables with the effect as it was measured or published (tests/nulls says which). A fair rule
supports a claim in about 5 % of the tables without its effect, and refutes it in as many where the
effect is at the margin. The counts of what is named replace those in the file, trial by trial.
``--missing`` leaves out those that the file has. ``--report`` writes the file's Markdown page
beside it, and computes nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Container, Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from moelaws.claims.base import Verdict  # noqa: E402
from moelaws.records.memory import keep_freed_memory  # noqa: E402
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
this page. Where a table takes long to make, there are fewer than 200. The claims that it lacks
depend on no loss: they are arithmetic of costs, counts of FLOPs or dimensions of hidden states.

| study | claim | supported without the effect | contradicted without it | supported with it |
|-|-|-:|-:|-:|
"""
MENDED = """
## Before rules were mended

Some rules were other ones when their rates were first counted, on such tables:

- *active size falls with sparsity* was contradicted by 10 of 40 tables without the effect. Its null
  took FLOPs and tokens for all there is; now active parameters count, routers among them.
- *sparsity rises with size* was supported by 12 of 40 such tables, and *sparsity falls with budget*
  by 6. They have the new null too, and surfaces average the forms that the runs allow.
- *best granularity is the same at all budgets* was supported by 37 of 100 tables with the effect,
  and *fewer shared with compute* by 5. Parabolas of all budgets now share a curvature.
- *sparser is better* was contradicted by 33 of 200 tables at the edge, for either end of the range
  and any budget could refute it. Now these intervals hold together.
- *attention share* was contradicted by 73 of 1000 tables at the edge. The noise of a least value no
  longer counts as an excess over it.
- *best granularity* was contradicted by 19 of 200 tables in which the granularity does nothing, and
  *few shared experts* by 17. A drawn parabola that has its top between the ends is least at one of
  them by chance. It counts at both now.
- *exponent identity* was contradicted by 26 of 200 tables at the edge. Where a fit held the floor
  of the loss at its bound, the exponent above it seemed certain. It has no interval now.
- That r/(1+r) fits best of the three forms of the experts' share is no claim any more. Without
  noise it fitted best, whichever form was true, and a fair rule told nothing at any tier.
- *the best size grows faster than the tokens* was contradicted by 19 of 200 tables of even growth,
  for the minima of noisy parabolas lie a little too near to the middle of the sizes. The interval
  is wider by that now.
- *sparsity alone lowers the loss* was contradicted by 27 of 200 tables in which sparsity does
  nothing by itself, for refits that stopped at a bound gave lambda an interval on one side of 0.
  Nothing is said now of a parameter that the runs do not identify. Of 200 tables with the lambda
  that was fitted here, -0.018, the rule supports 3, before 36; with a lambda of -0.5 it is 75.
- *routing regimes* was contradicted by 5 of 40 tables at the edge, and *ratio rises* by 6 of 40,
  for any of several numbers could refute them. Now several refute as seldom as one.
- *beats baselines* was contradicted by 30 of 200 tables in which Chinchilla's law is as good as
  Eq 2. In one of ten the fit of Eq 2 fails: it misses the held-out runs by 3 nats and more, once by
  1e33. Now a fit that misses them by more than they differ from their mean says nothing.

## What is left

- *moe batch larger* is contradicted by 29 of 200 searches whose losses are shuffled among rates
  and batches. That is not its null: its interval knows the noise between seeds alone, and shuffled
  losses spread much further.
- *equal split*, *eq 4 predicts large leverage*, *eq 6 predicts the sparsest*, *law tells text from
  shuffled text*, *the frontier predicts a larger budget* and most claims of *transfer* are
  contradicted by many tables that lie beyond the edge of what they claim.
"""
# The columns: of which tables, which verdict, and which of several trials is the least favourable
WORST = [
    ("null", str(Verdict.SUPPORTED), "idxmax"),
    ("null", str(Verdict.NOT_SUPPORTED), "idxmax"),
    ("effect", str(Verdict.SUPPORTED), "idxmin"),
]


Counted = tuple[str, str, int]  # study, claim and trial


def verdicts(task: tuple[str, int, list[str], int]) -> list[tuple[str, str]]:
    """Returns the verdicts on claims of a study's trial, of the table with this seed."""
    name, place, claims, seed = task
    study, trial = load_study(name, ROOT), import_module(f"nulls.{name}").TRIALS[place]
    # Tables and fits are written below the current folder, beside a copy of the configuration.
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        shutil.copytree(ROOT / "config", "config")
        given = trial.made(seed)
        return [(claim, decided(study, claim, given)) for claim in claims]


def rows(name: str, only: str, tables: int, done: Container[Counted]) -> Iterator[pd.DataFrame]:
    """Yields a row for each claim of a trial of a study that is not ``done``, with its counts."""
    with ProcessPoolExecutor(initializer=keep_freed_memory) as pool:
        for place, trial in enumerate(import_module(f"nulls.{name}").TRIALS):
            asked = [claim for claim in trial.claims if only in ("", claim)]
            claims = [claim for claim in asked if (name, claim, place) not in done]
            if not trial.kind or not claims:
                continue
            tasks = [(name, place, claims, seed) for seed in range(tables)]
            each = Counter(one for own in pool.map(verdicts, tasks, chunksize=4) for one in own)
            found = []
            for claim in claims:
                counts = {str(verdict): each[claim, verdict] for verdict in Verdict}
                about = {"study": name, "claim": claim, "trial": place, "tables": trial.kind}
                found.append(about | counts)
                print(*found[-1].values(), sep="  ", flush=True)
            yield pd.DataFrame(found)


def report(counts: pd.DataFrame) -> str:
    """Returns a Markdown table with a row a claim: the worst of its trials of each kind."""
    lines = [HEAD]
    for (study, claim), own in counts.groupby(["study", "claim"], sort=True):
        n = own[list(map(str, Verdict))].sum(axis=1)
        cells = []
        for kind, verdict, worst in WORST:
            share = (own[verdict] / n)[own["tables"] == kind]
            row = share.agg(worst) if len(share) else None
            cells.append("not counted" if row is None else f"{own.loc[row, verdict]} of {n[row]}")
        words = str(claim).replace("_", " ")
        lines.append(f"| {study} | {words} | {' | '.join(cells)} |\n")
    return "".join([*lines, MENDED])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("studies", nargs="*", metavar="STUDY[:CLAIM]", help=", ".join(STUDIES))
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--out", type=Path, default=ROOT / "docs/evidence/nulls.csv")
    parser.add_argument("--missing", action="store_true", help="count what the file lacks")
    parser.add_argument("--report", action="store_true", help="write the page of the counts alone")
    given = parser.parse_args()
    if given.report:
        given.out.with_suffix(".md").write_text(
            report(pd.read_csv(given.out, keep_default_na=False))
        )
        return
    keys = ["study", "claim", "trial"]
    for word in given.studies or STUDIES:
        study, _, claim = word.partition(":")
        known = pd.DataFrame(columns=keys)
        if given.out.is_file():
            known = pd.read_csv(given.out, keep_default_na=False)  # a kind is "null"
        done = set(known[keys].itertuples(index=False, name=None)) if given.missing else set()
        for new in rows(study, claim, given.tables, done):
            known = pd.concat([known, new]).drop_duplicates(keys, keep="last")
            known.sort_values(keys).to_csv(given.out, index=False)


if __name__ == "__main__":
    main()
