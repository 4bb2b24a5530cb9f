"""The columns of a study's table, which ``schema.toml`` declares."""

from moelaws.spec.from_toml import table_beside
from moelaws.spec.run import DESCRIBED_OPTIONS
from moelaws.tables.column import Column, stated

_DECLARED = table_beside(__file__)
COLUMNS, _OWN = stated(_DECLARED["columns"]), stated(_DECLARED["own"])
CORPUS = _OWN[0]
CONFIGURATION: list[str] = _DECLARED["configuration"]
TRAINED_COLUMNS = (
    *COLUMNS,
    *_OWN,
    *stated(_DECLARED["trained"]),
    *(Column(name, "float?", text) for name, text in DESCRIBED_OPTIONS.items()),
    *stated(_DECLARED["trained_further"]),
)

SIMULATED_COLUMNS = tuple(
    c.with_nulls() if c.name in _DECLARED["of_a_training"] else c for c in (*COLUMNS, *_OWN)
)

IMPORTED_COLUMNS = tuple(c if c.name in _DECLARED["required"] else c.with_nulls() for c in COLUMNS)
