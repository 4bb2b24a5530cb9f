"""Loss from size, data and granularity of the experts (Krajewski et al. 2024, Eq 9)."""

from moelaws.laws.declared import law_beside

LAW, VARIANTS = law_beside(__file__)
