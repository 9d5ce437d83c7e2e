"""The simulation study (appendix G): synthetic data, models trained on it, and the paper's findings."""
