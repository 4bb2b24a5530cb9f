"""A register that a test writes: files of the shape of public ones, imported by their mappings."""

import json
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from moelaws import laws
from moelaws.analysis.derive import derive
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import read_runs
from moelaws.claims.judge import judged
from moelaws.fitting.fit import fit
from moelaws.fitting.report import write_fit
from moelaws.spec.project import load_study
from moelaws.tables.imported import import_table, take

SIZES = {512: 4.36e7, 640: 7.33e7, 768: 1.045e8, 896: 1.719e8, 1024: 2.262e8, 1280: 3.81e8}
SIZES |= {1536: 6.382e8, 1792: 9.202e8, 2048: 1.37e9, 2304: 1.824e9, 2560: 2.512e9}
WIDTHS = [*SIZES]
# Budget -> widths, as marin's isoFLOP runs have them: 49 runs, the last two sizes twice
GRID = {
    1e18: [512, 640, 768, 896, 1024, 1280, 1536, 1792],
    3e18: [512, 640, 768, 896, 1024, 1280, 1536, 1792, 2048],
    1e19: [512, 640, 768, 896, 1024, 1280, 1536, 1792, 2048],
    3e19: [640, 768, 896, 1024, 1280, 1536, 1792, 2048],
    1e20: [768, 1024, 1280, 1536, 1792, 2048],
    3e20: [1280, 1536, 1792, 2048, 2304],
    1e21: [2048, 2560, 2048, 2560],
}
LADDER = """# A ladder

## Results

| size | variant | TPP | batch | active | total | steps | FLOPs | MFU | Paloma loss | Paloma bpb | uncheat bpb |
|------|---------|-----|-------|--------|-------|-------|-------|-----|-------------|------------|-------------|
"""  # noqa: E501


def frontier(C):
    """The loss at the best size of each budget (n,)."""
    return 1.6 + 91.0 * np.asarray(C, float) ** -0.093


def best_size(C, b=0.5):
    return 7.3e8 * (np.asarray(C, float) / 1e20) ** b


def isoflop_losses(C, N, b=0.5, best=frontier):
    """Losses (n,) whose least one over size is ``best`` at ``best_size``."""
    return best(C) * np.exp(0.02 * np.log(N / best_size(C, b)) ** 2)


def write_isoflop(folder, seed=0, noise=0.002, losses=isoflop_losses):
    """The two files of marin-v16, with ``losses`` that have a relative ``noise``."""
    rng = np.random.default_rng(seed)
    first, second = [], []
    for C, widths in GRID.items():
        for i, width in enumerate(widths):
            N = SIZES[width]
            name, tokens = f"isoflop-{C:.0e}-d{width}-{i}", round(C / (6 * N))
            L = float(losses(C, N) * np.exp(noise * rng.standard_normal()))
            first.append(
                {"budget": C, "dim": width, "macro_loss": L, "bpb": 0.31 * L, "name": name}
            )
            tokens = round(C / (6 * N))
            second.append({"name": name, "tokens": tokens, "gflops": 1.2 * C / 1e9})
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "v16_isoflop_data.json").write_text(json.dumps(first))
    (folder / "old_isoflop_data.json").write_text(json.dumps(second))


def write_ladder(folder, leverage=4.0, seed=0, noise=0.001, mfu=10):
    """The page of marin-ladder, on which mixtures need ``leverage`` times less compute.

    Dense models have an MFU of 20 %, and mixtures one of ``mfu`` %.
    """
    rng = np.random.default_rng(seed)
    lines = []
    for variant, factor, Cs in (
        ("dense", 1.0, (9.4e16, 6.3e17, 3.9e18, 1.2e19)),
        ("moe", leverage, (3.5e17, 2.3e18, 1.4e19, 4.3e19)),
    ):
        for width, C in zip((512, 768, 1024, 1280), Cs, strict=True):
            L = (1.2 + 66.0 * (factor * C) ** -0.084) * np.exp(noise * rng.standard_normal())
            own = f"{20 if variant == 'dense' else mfu}%"
            cells = (f"d{width}", variant, 20, 128, "20M", "40M", 700, C, own, L, L / 2.4, L / 3)
            lines.append("| " + " | ".join(map(str, cells)) + " |")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "marin_ladder.md").write_text(LADDER + "\n".join(lines) + "\n")


def unpin(name, root=Path()):
    """Lets a mapping of the register take files of other digests, as a test writes them."""
    path = root / f"config/imports/{name}.yaml"
    mapping = yaml.safe_load(path.read_text())
    for file in (mapping["origin"], *mapping["origin"].get("others", ())):
        file.pop("sha256", None)
    path.write_text(yaml.safe_dump(mapping))
    return path


class Register:
    """The study of a register in the current folder, and what it makes of its tables."""

    def __init__(self):
        self.study = load_study("public")
        self.root = Path("made")
        self.fits, self.tables = {}, {}

    def add(self, name, write, **options):
        write(Path("files") / name, **options)
        source = Path("files") / name
        files = [*source.iterdir()]
        mapping = unpin(name)
        imported = import_table(files[0] if len(files) == 1 else source, mapping)
        imported.write(Path(f"results/imported/{name}.parquet"))
        return self

    @cached_property
    def frame(self):
        take(self.study, self.root / "public.parquet", None)
        return read_runs(self.root / "public.parquet")

    @property
    def inputs(self):
        return FittedInputs(frame=self.frame, fits=self.fits, derived_tables=self.tables)

    def derive(self, name):
        entry = self.study.derived_table(name)
        for needed in entry.derived:
            self.derived(needed)
        for needed in entry.fits:
            self.fit(needed)
        path = self.root / f"{name}.parquet"
        derive(self.study, name, self.inputs, path)
        self.tables[name] = path

    def derived(self, name):
        if name not in self.tables:
            self.derive(name)
        return pd.read_parquet(self.tables[name])

    def fit(self, name):
        if name not in self.fits:
            entry = self.study.fit(name).model_copy(update={"bootstrap": 30})
            entry = entry.model_copy(update={"protocol": {"sample": 20}} if "free" in name else {})
            frame = self.derived(entry.table) if entry.table else self.frame
            path = self.root / f"{name}.json"
            write_fit(fit(laws.fittable(entry.law), frame, entry), path)
            self.fits[name] = path
        return self.inputs.fit(name)

    def inputs_of(self, name):
        """What the claim ``name`` reads."""
        claim = self.study.entry("claims", name)
        for needed in claim.derived:
            self.derived(needed)
        for needed in claim.fits:
            self.fit(needed)
        return self.inputs

    def judge(self, name):
        return judged(self.study, self.study.entry("claims", name), self.inputs_of(name))
