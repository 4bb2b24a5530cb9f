"""Claims of studies: verdicts by rule, and the pages of verdicts and of contests."""
