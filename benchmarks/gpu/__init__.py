"""What is measured on the day that a GPU is there, a module a part; ``make gpu`` calls them all."""
