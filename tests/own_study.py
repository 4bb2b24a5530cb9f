"""The study of docs/adding-a-study.md with a small grid, written where a test wants it."""

import yaml

from page_blocks import blocks
from repository import REPOSITORY

STEPS = [20, 30, 40, 50]


def write_study(folder, *kinds):
    """Writes the page's files to ``folder``, a small grid, and its entries of ``kinds``."""
    for _, text in blocks(REPOSITORY / "docs/adding-a-study.md"):
        first, _, rest = text.partition("\n")
        place = first.removeprefix("# ../ours/")
        if place != first:
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            (folder / place).write_text(rest)
    study = yaml.safe_load((folder / "study.yaml").read_text())
    study["grids"]["demo"]["sweeps"] = [{"axes": {"steps": STEPS, "d_model": 8, "d_ffn": 32}}]
    for kind in {"package", "derived", "fits", "figures", "claims", "contests"} - set(kinds):
        study.pop(kind, None)
    (folder / "study.yaml").write_text(yaml.safe_dump(study, allow_unicode=True))
