"""The columns of a study's table, which ``schema.toml`` declares."""

from moelaws.spec.from_toml import table_beside
from moelaws.spec.run import DESCRIBED_OPTIONS
from moelaws.tables.column import Column, stated

_DECLARED = table_beside(__file__)
COLUMNS, _OWN = stated(_DECLARED["columns"]), stated(_DECLARED["own"])
CORPUS = _OWN[0]
TRAINED_COLUMNS: tuple[Column, ...] = (
    *COLUMNS,
    *_OWN,
    *stated(_DECLARED["trained"]),
    *(Column(name, "float?", text) for name, text in DESCRIBED_OPTIONS.items()),
    *stated(_DECLARED["trained_further"]),
)

# Only a training has values of these: in a simulated table they are missing.
_OF_A_TRAINING = ("epochs", "seconds", "tokens_per_second", "peak_memory", "code", "corpus")
SIMULATED_COLUMNS: tuple[Column, ...] = tuple(
    c.with_nulls() if c.name in _OF_A_TRAINING else c for c in (*COLUMNS, *_OWN)
)

# The file of somebody else's runs need not have more than these.
_REQUIRED = ("run_id", "study", "source", "status")
IMPORTED_COLUMNS: tuple[Column, ...] = tuple(
    c if c.name in _REQUIRED else c.with_nulls() for c in COLUMNS
)
