"""What several commands share: options, reading of inputs, progress."""
