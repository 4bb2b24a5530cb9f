"""The page of a tier that people open first: all that is known of its runs, in one file."""
