"""Whether the fitted rows determine what a law predicts for others."""

import tracemalloc

from moelaws import laws
from moelaws.fitting.caveats import require_determined

ROWS = 12_000


def test_many_rows_take_memory_in_proportion(dense):
    law = laws.fittable("chinchilla")
    table = dense(sizes=ROWS // 100, tokens=100)
    columns = {name: table[name].to_numpy() for name in ("N", "D")}
    tracemalloc.start()
    try:
        require_determined(law, law.published, columns, columns)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100 * 8 * ROWS  # a hundred numbers a row; a square matrix has 12,000
