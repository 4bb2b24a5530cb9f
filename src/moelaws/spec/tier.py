"""The tiers of a study: how big its grids are."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, WrapValidator

Shipped = Literal["demo", "workstation", "gpu", "node", "paper"]
TIERS: tuple[Shipped, ...] = get_args(Shipped)


def own_tiers(root: Path = Path()) -> dict[Any, Path]:
    """Returns a user's own tiers with their files, which have a grid for each study."""
    return {path.stem: path for path in sorted(root.glob("config/tiers/*.yaml"))}


def _own(value: Any, shipped: Any) -> Any:
    return value if value in list(own_tiers()) else shipped(value)  # it may be of any type


if TYPE_CHECKING:
    Tier = str  # a user's own tiers have other names
else:
    Tier = Annotated[Shipped, WrapValidator(_own)]
# Some tiers, or true for all
Tiers = Annotated[tuple[Tier, ...], BeforeValidator(lambda v: TIERS if v is True else v or ())]
CPU_TIERS = ("demo", "workstation")  # sized for CPU cores, the others for GPUs
