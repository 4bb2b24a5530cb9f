"""The generalization study at its demo grid with losses of a known law, fitted and derived."""

from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from moelaws import laws
from moelaws.fitting.fit import fit
from moelaws.grids.sweep import expand_study
from moelaws.spec.project import Project, load_study
from moelaws.tables.foreign import read_any
from moelaws.tables.simulate import design
from repository import REPOSITORY
from study_case import Case, filled

ALPHA_N, ALPHA_D, FLOOR = 0.5, 0.3, 1.2
WIDTH_OF_DATA = 3  # dimension of the hidden states that are made up


def losses(runs: pd.DataFrame, noise: float, seed: int = 0) -> pd.Series:
    """A/N^alpha + B/D^beta + E, and a price of routing that turns beyond eight experts.

    N counts the parameters as Tables 3 and 4 of the paper do.
    """
    d, w, k = (runs[c].astype(float) for c in ("d_model", "d_expert", "k"))
    N = runs["n_layers"] * (4 * d**2 + k * (2 * d * w + w + d))
    x = np.log(runs["E"] / runs["k"])
    routing = 0.05 * x - 0.03 * np.maximum(x - np.log(4), 0) * 4
    L = 60 / N**ALPHA_N + 40 / runs["D"] ** ALPHA_D + FLOOR + routing
    return L * np.exp(noise * np.random.default_rng(seed).standard_normal(len(L)))


def demo_table(noise: float, corpora: tuple[str, ...] = ("stdlib",)) -> pd.DataFrame:
    """A table of the study's demo grid with such losses, as if trained.

    Each further corpus has the runs of the sweeps model and data, with losses of its own.
    """
    study = load_study("generalization", REPOSITORY)
    frame = design(expand_study(study, Project(), REPOSITORY))
    every = [frame.assign(L=losses(frame, noise), bpb=2.0, corpus=corpora[0])]
    slopes = frame[frame["sweep"].str.contains("model|data")]
    for seed, corpus in enumerate(corpora[1:], 1):
        own = slopes.assign(L=0.2 * seed + losses(slopes, noise, seed), bpb=2.0 + seed)
        own["sweep"] = [",".join(set(x.split(",")) & {"model", "data"}) for x in own["sweep"]]
        ids = (sha256(f"{corpus}{run}".encode()).hexdigest() for run in own["run_id"])
        own["run_id"] = [digest[:16] for digest in ids]
        every.append(own.assign(corpus=corpus))
    whole = pd.concat(every, ignore_index=True)
    whole = whole.assign(source="trained", status="completed", L_se=0.004, n_seeds=1)
    return filled(whole).assign(corpus=whole["corpus"])


def write_case(root: Path, table: pd.DataFrame) -> Case:
    """Fits and derives from ``table`` all that the study's entries read."""
    study = load_study("generalization", REPOSITORY)
    case = Case.of(study, root, table)
    for run in table[table["n_layers"] >= 4].itertuples():
        write_states(case.results.hidden(run.run_id), int(run.n_layers), int(run.d_model))
    case.derive(*(entry.name for entry in study.derived if not entry.fits))
    for spec in map(study.fit, {name for entry in study.readers for name in entry.fits}):
        rows, units = read_any(case.derived[spec.table] if spec.table else case.table)
        # Fewer starts and draws than a study's: what is tested does not hang on them.
        quick = {"bootstrap": 30} | (
            {"protocol": {"sample": 15}} if spec.law in ("chinchilla", "joint.loss") else {}
        )
        law = laws.fittable(spec.law)
        case.add(fit(law, rows, spec.model_copy(update=quick), units=units))
    case.derive(*(entry.name for entry in study.derived if entry.fits))
    return case


def write_states(path: Path, layers: int, width: int) -> None:
    """Hidden states on a curved sheet of ``WIDTH_OF_DATA`` dimensions, as the probe writes them."""
    rng = np.random.default_rng(0)
    frames = []
    for layer in range(layers + 1):
        u = rng.uniform(-1, 1, (600, WIDTH_OF_DATA))
        x = np.column_stack([u, u**2]) @ rng.standard_normal((2 * WIDTH_OF_DATA, width))
        frames.append(pd.DataFrame({"layer": layer, "state": list(x.astype(np.float32))}))
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pandas(pd.concat(frames), preserve_index=False), path)
