"""Where everything lies below ``results/``; its paths stand here alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

LACKED_MEMORY = "lacked_memory.json"
KEPT = "status.json"


@dataclass(frozen=True)
class Results:
    """The folders of one ``results/`` tree."""

    root: Path = Path("results")

    def corpus(self, corpus_id: str) -> Path:
        """Tokenizer, shards and meta.json of a prepared corpus."""
        return self.root / "corpora" / corpus_id

    @property
    def runs(self) -> Path:
        return self.root / "runs"

    def run(self, run_id: str) -> Path:
        """config.json, history.parquet, load.parquet, summary.json, provenance.json and log."""
        return self.runs / run_id

    def summary(self, run_id: str) -> Path:
        """Written last: a run is done when this file exists."""
        return self.run(run_id) / "summary.json"

    def lacked_memory(self, run_id: str) -> Path:
        """Written each time that the run ended out of memory, after its summary."""
        return self.run(run_id) / LACKED_MEMORY

    def checkpoint(self, run_id: str) -> Path:
        """Of an unfinished run; outside its folder, which Snakemake may clear before a retry."""
        return self.root / "checkpoints" / run_id

    def weights(self, run_id: str) -> Path:
        """Folder of the final weights, of runs that a study keeps."""
        return self.root / "weights" / run_id

    def kept(self, run_id: str) -> Path:
        """Written after the weights: that they are there, or why not."""
        return self.weights(run_id) / KEPT

    def hidden(self, run_id: str) -> Path:
        """Hidden states of a run whose weights are kept, at sampled held-out tokens."""
        return self.root / "hidden" / f"{run_id}.parquet"

    def tier(self, tier: str, simulated: bool = False) -> Path:
        """Tables, fits and figures of a tier; simulated ones have a tree of their own."""
        return self.root / tier / "simulated" if simulated else self.root / tier

    def table(self, tier: str, study: str, simulated: bool = False) -> Path:
        return self.tier(tier, simulated) / "tables" / f"{study}.parquet"

    def derived(self, tier: str, study: str, name: str, simulated: bool = False) -> Path:
        return self.tier(tier, simulated) / "derived" / study / f"{name}.parquet"

    def fit(self, tier: str, study: str, fit: str, simulated: bool = False) -> Path:
        return self.tier(tier, simulated) / "fits" / study / f"{fit}.json"

    def figure(self, tier: str, study: str, figure: str, simulated: bool = False) -> Path:
        """The PDF; the PNG and the CSV of the plotted numbers lie beside it."""
        return self.tier(tier, simulated) / "figures" / study / f"{figure}.pdf"

    def paper_table(self, tier: str, study: str, table: str, simulated: bool = False) -> Path:
        """The CSV; Markdown and LaTeX lie beside it, all of them among the figures."""
        return self.figure(tier, study, table, simulated).with_suffix(".csv")

    def verdicts(self, tier: str, study: str, simulated: bool = False) -> Path:
        """The judged claims of one study."""
        return self.tier(tier, simulated) / "claims" / f"{study}.json"

    def claims(self, tier: str, simulated: bool = False) -> Path:
        """The judged claims of all chosen studies, to read."""
        return self.tier(tier, simulated) / "claims.md"
