"""What of a study can be made here, where tables that it reads may not be imported; light."""

from pathlib import Path

from moelaws.files.layout import Results
from moelaws.spec.study import KINDS, Study
from moelaws.spec.tier import Tier

FOLDER = Path("config/imports")  # of the register's mappings


def imported_files(study: Study) -> dict[Path, Path]:
    """Returns table -> mapping of a study's imported runs; those of the register may be absent."""
    if (own := study.imported) is None:
        return {}
    if own.names:
        return {Results().imported(name): FOLDER / f"{name}.yaml" for name in own.names}
    return {study.shipped(own.table): study.shipped(own.mapping)}


def lacks_first(study: Study) -> str:
    """Returns why a study of the register cannot be made here; empty if it can."""
    first = next(iter(imported_files(study)), None)
    if first is None or first.is_file():
        return ""
    return f"study {study.study}: {first} is not here; run moelaws import {first.stem}"


def at_hand(study: Study, tier: Tier) -> Study:
    """Returns the study at ``tier`` without entries whose table of the register is absent."""
    if lacks_first(study):
        return study.model_copy(update=dict.fromkeys(KINDS, ()))
    return study.at_tier(tier).without(absent(study))


def absent(study: Study) -> list[str]:
    """Returns the names of the register that a study reads and that are not imported here."""
    return [path.stem for path in imported_files(study) if not path.is_file()]
