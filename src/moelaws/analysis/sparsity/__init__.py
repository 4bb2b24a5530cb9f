"""What the sparsity paper derives beyond its isoFLOP optima."""
