"""The paper's experiments: cells that are run and stored, and pages that show their results."""
