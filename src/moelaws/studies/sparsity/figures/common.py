"""What the sparsity paper's figures share: one colour for each value."""

from moelaws.analysis.inputs import Inputs
from moelaws.figures import style


def colours(inputs: Inputs, column: str) -> dict[float, style.Colour]:
    """Returns a colour for each value of ``column`` in the table, the same in every figure."""
    return style.palette(inputs.completed[column].dropna())
