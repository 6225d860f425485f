"""Every number in `results/` is made by a module of this package."""
