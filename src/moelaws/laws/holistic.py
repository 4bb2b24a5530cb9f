"""Compute-optimal model scale and data of mixtures (Wan et al. 2026, 2603.21862)."""

from moelaws.laws.declared import law_beside

LAW, VARIANTS = law_beside(__file__)
