"""Rates, batches, sizes and tokens of dense models over compute (Bi et al. 2024, 2401.02954)."""

from moelaws.laws.declared import law_beside

LAW, VARIANTS = law_beside(__file__)
