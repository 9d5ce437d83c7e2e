"""The tables and figures of the paper, rerun on its datasets."""
