"""This machine's GPUs: which there are, and who trains on which. It never starts CUDA."""
