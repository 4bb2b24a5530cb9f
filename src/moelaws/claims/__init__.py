"""Claims of the papers, each with a decision rule in code: one module a study."""
