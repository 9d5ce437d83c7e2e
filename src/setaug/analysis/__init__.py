"""Analyses of label sets: inspection, diagnosis, likelihood over orders, and the model that measures order."""
