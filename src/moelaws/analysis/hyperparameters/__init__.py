"""The search for learning rate, batch and model size (leverage, App E): what follows from it."""
