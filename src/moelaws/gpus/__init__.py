"""This machine's GPUs: which there are, and who trains on which. CUDA is never started here."""
