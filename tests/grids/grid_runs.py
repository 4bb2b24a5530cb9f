"""Grids that a test writes out, expanded to runs of one text, and the paper's table of widths."""

from typing import Any

from moelaws.grids.expand import Run, expand
from moelaws.spec.base import parse
from moelaws.spec.grid import Grid
from planned_study import TEXT

# Table 12, leverage (64 + 1 experts, 2 + 1 active): blocks, heads, key-value heads, budget, and
# (width, expert width).
TABLE_12 = [
    (8, 8, 2, 2e18, [(352, 450), (368, 380), (384, 320), (400, 260), (416, 208)]),
    (8, 8, 2, 6e18, [(480, 626), (512, 512), (544, 410), (560, 364), (576, 320)]),
    (10, 10, 2, 2e19, [(600, 766), (640, 640), (680, 528), (700, 476), (740, 380)]),
    (14, 12, 4, 6e19, [(696, 988), (768, 768), (816, 642), (840, 584), (888, 474)]),
    (16, 16, 4, 2e20, [(896, 1378), (1024, 1024), (1088, 876), (1152, 742), (1184, 680)]),
    (22, 20, 4, 6e20, [(1120, 1686), (1280, 1280), (1360, 1110), (1440, 956), (1520, 816)]),
]


def runs_of(grid: dict[str, Any], **options: Any) -> list[Run]:
    """The runs of a ``grid`` as YAML has it."""
    return expand(parse(Grid, grid, "g.yaml"), TEXT, "g.yaml, grids.demo", **options)
