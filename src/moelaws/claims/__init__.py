"""Claims of the papers: verdicts by rule, and the pages of verdicts and of contests."""
