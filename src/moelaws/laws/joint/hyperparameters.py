"""Learning rate over active size and experts (Ludziejewski et al. 2025, 2502.05172)."""

from moelaws.laws.declared import law_beside

LAW, VARIANTS = law_beside(__file__)
