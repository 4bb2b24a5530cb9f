"""The sectional study's grids with results that a test chooses, in files as trainings leave."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd
from safetensors.numpy import save_file

from moelaws.analysis.derive import derive
from moelaws.analysis.inputs import Inputs
from moelaws.claims.judge import judged
from moelaws.files.atomic import write_json
from moelaws.files.layout import Results
from moelaws.grids.expand import architectures, expand
from moelaws.probing.speed import COLUMNS as SPEED_COLUMNS
from moelaws.probing.speed import write_rows
from moelaws.records.tensors import file_of
from moelaws.spec.project import load_study
from moelaws.studies.sectional.arms import RATES
from moelaws.tables.describe import describe
from moelaws.training.columns import write_columns
from moelaws.training.expert_load import ExpertLoad
from moelaws.training.history import COLUMNS as HISTORY
from planned_study import TEXT
from repository import REPOSITORY

STUDY = load_study("sectional", REPOSITORY)
TIERS = ("demo", "workstation")
GRIDS = {tier: expand(STUDY.grids[tier], TEXT, f"sectional.yaml, {tier}") for tier in TIERS}
RUNS = GRIDS["demo"]
DERIVED = tuple(entry.name for entry in STUDY.derived)


@dataclass
class Case:
    """Losses, paces of learning, loads and times by arm; what is not named is as the dense model.

    Attributes:
        offset: of the loss from 4 nats, by arm; slices change by ``slope`` with each doubling.
        steeper: what is added to the slope at the larger ``d_model`` or ``context``, by column.
        pace: how many times as fast as the dense model an arm's training loss falls.
        counts: tokens that each of the eight experts got in every layer, by arm.
        times: of a token at equal widths over the dense model's, by sweep and number of slices.
        latency: of a token generated over the dense model's, by sweep.
        drift: what training adds to the weights of all experts alike, by arm; where it is negative,
            what they have in common at first and lose.
        beyond: what the loss rises beyond the trained length more than the dense model's, by arm.
    """

    root: Path
    tier: str = "demo"
    offset: dict[str, float] = field(default_factory=dict)
    slope: float = 0.0
    steeper: dict[str, float] = field(default_factory=dict)
    pace: dict[str, float] = field(default_factory=dict)
    counts: dict[str, list[int]] = field(default_factory=dict)
    times: dict[tuple[str, int], float] = field(default_factory=dict)
    latency: dict[str, float] = field(default_factory=dict)
    drift: dict[str, float] = field(default_factory=dict)
    beyond: dict[str, float] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()  # arms that did not complete
    seeds: int = 3  # of each arm, at most
    absent: tuple[str, ...] = ()  # beginnings of sweeps that the grid has not

    def inputs(self, names: Collection[str] = DERIVED) -> Inputs:
        """Writes all files and the derived tables ``names``, and returns what entries read."""
        results = Results(self.root)
        grid = [replace(run, sweeps=self._present(run)) for run in GRIDS[self.tier]]
        runs = [run for run in grid if run.sweeps]
        frame = pd.DataFrame([self._row(run) for run in runs])
        for run, row in zip(runs, frame.to_dict("records"), strict=True):
            self._record(results, run, row, "similarity" in names)
        speed = results.tier(self.tier).speed("sectional")
        write_rows(speed, [self._speed(run) for run in architectures(runs)], {})
        inputs = Inputs(frame=frame, results=results, speed_file=speed)
        tables = {name: self.root / f"{name}.parquet" for name in names}
        for name, path in tables.items():
            derive(STUDY, name, inputs, path)
        return Inputs(frame=frame, results=results, speed_file=speed, derived_tables=tables)

    def judge(self, claim: str, inputs: Inputs | None = None):
        """The verdict on a claim by its name."""
        (entry,) = (c for c in STUDY.claims if c.name == claim)
        return judged(STUDY, entry, inputs or self.inputs(entry.derived))

    def _present(self, run) -> tuple[str, ...]:
        if run.config.seed >= self.seeds:
            return ()
        return tuple(name for name in run.sweeps if not name.startswith(self.absent))

    def _row(self, run) -> dict:
        row = describe(run)
        arm = row["sweep"].split(",")[-1]
        doublings = np.log2(row["E"] / 4) if row["kind"] == "slice" else 0.0
        larger = {"d_model": row["d_model"] > 64, "context": row["context"] > 128}
        slope = self.slope + sum(more for name, more in self.steeper.items() if larger[name])
        L = 4.0 + self.offset.get(arm, 0.0) + slope * doublings
        L += 0.05 * row["seed"]  # what a seed does to all arms alike
        L += 0.01 if int(run.run_id, 16) % 2 else -0.01
        L += 0.3 * arm.startswith(RATES)
        status = "diverged" if arm in self.left_out else "completed"
        counts = self.counts.get(arm, [4] * 8)
        cv = float(np.std(counts) / np.mean(counts)) if row["kind"] == "moe" else np.nan
        return row | {
            "arm": arm, "C": np.nan, "status": status, "L": L if status == "completed" else np.nan,
            "L_beyond": L + 0.3 + self.beyond.get(arm, 0.0), "L_se": 0.01, "source": "trained",
            "balance_cv": cv, "tokens_per_second": 1e4, "peak_memory": 1e8,
        }  # fmt: skip

    def _record(self, results, run, row, keeps_weights) -> None:
        folder, steps = results.run(run.run_id), run.config.steps
        folder.mkdir(parents=True)
        step = np.arange(1, steps + 1)
        loss = 6.0 - 2.0 * self.pace.get(row["arm"], 1.0) * step / steps
        columns = {name: np.zeros(steps) for name in HISTORY}
        columns |= {"step": step, "tokens": step * 512, "loss": loss}
        write_columns(folder / "history.parquet", HISTORY, columns)
        if row["kind"] == "moe":
            counts_LE = np.array([self.counts.get(row["arm"], [4] * 8)] * 2)
            ExpertLoad(steps, 0).write(folder / "load.parquet", counts_LE)
        if row["kind"] == "moe" and keeps_weights:
            rng = np.random.default_rng(len(row["arm"]))
            shapes = {"w_gate_up": (8, 4, 10), "w_down": (8, 5, 4)}  # E = 8, d = 4, five units
            weights = {
                f"layers.{layer}.moe.routed_experts.{name}": rng.normal(size=shape)
                for layer in (0, 1)
                for name, shape in shapes.items()
            }
            kept = STUDY.keep_weights.steps_of(steps)
            write_json(results.kept(run.run_id), {"status": "completed", "steps": list(kept)})
            for at in (*kept, None):
                drift, done = self.drift.get(row["arm"], 0.0), (at or steps) / steps
                grown = drift * done if drift > 0 else -drift * (1 - done)
                # Each unit of all experts grows in a direction of its own.
                more = {n: grown * np.sign(w[:1]) for n, w in weights.items()}
                saved = {n: (w + more[n]).astype(np.float32) for n, w in weights.items()}
                save_file(saved, results.weights(run.run_id) / file_of(at))

    def _speed(self, run) -> dict:
        sweep = run.sweeps[0].removeprefix(RATES)
        slices = run.config.model.slices
        ratio = self.times.get((sweep, slices.n_experts if slices else 1), 1.0)
        slower = self.latency.get(sweep, 1.0)
        row = dict.fromkeys(SPEED_COLUMNS, 1)
        ends = {"time_ratio_low": 0.99 * ratio, "time_ratio_high": 1.01 * ratio}
        ends |= {"generation_ratio_low": 0.99 * slower, "generation_ratio_high": 1.01 * slower}
        ends |= {"generation_ratio": slower, "generation_seconds": 0.002 * slower}
        texts = {"run_id": run.run_id, "backend": "torch", "device": "cpu"}
        return row | texts | {"time_ratio": ratio} | ends
