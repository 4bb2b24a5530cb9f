"""The tiers of a study: how big its grids are."""

from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator

Tier = Literal["demo", "workstation", "gpu", "paper"]
TIERS: tuple[Tier, ...] = get_args(Tier)
# Some tiers, or true for all
Tiers = Annotated[tuple[Tier, ...], BeforeValidator(lambda v: TIERS if v is True else v or ())]
CPU_TIERS: tuple[Tier, ...] = ("demo", "workstation")  # sized for CPU cores, the others for GPUs
