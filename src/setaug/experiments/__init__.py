"""Experiments: grids of cells that are run, kept and told as tables and pictures."""
