"""The Trainer, its losses, what it reports, and training over several processes."""
