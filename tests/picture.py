"""What must hold of every figure, read from its pixels and its words."""

from itertools import pairwise

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from moelaws.figures.sheet import Sheet

GAP = 1  # pixels between two labels, at the least


def assert_legible(sheet: Sheet) -> None:
    """No word is clipped at the page's edge, and no tick's label touches the next one."""
    canvas = FigureCanvasAgg(sheet.figure)
    canvas.draw()
    picture = np.asarray(canvas.buffer_rgba())[..., :3]
    for edge in (picture[0], picture[-1], picture[:, 0], picture[:, -1]):
        assert (edge == 255).all()  # a clipped word leaves ink there
    for panel in sheet.panels:
        for axis, side in ((panel.ax.xaxis, 0), (panel.ax.yaxis, 1)):
            low, high = sorted(axis.get_view_interval())
            boxes = [
                label.get_window_extent(canvas.get_renderer()).extents
                for label in axis.get_majorticklabels()
                if label.get_text() and low <= label.get_position()[side] <= high
            ]
            for first, second in pairwise(sorted(boxes, key=lambda box: box[side])):
                assert first[side + 2] + GAP <= second[side]


def words(sheet: Sheet) -> str:
    """All that is written in a figure."""
    return " ".join(text.get_text().replace("\n", " ") for text in sheet.figure.findobj(Text))
