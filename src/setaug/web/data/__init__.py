"""Datasets that clients upload: held on disk, and read and computed in processes of their own."""
