"""Ports for servers that are started, or started again, some time after their port was chosen."""

import random
import socket


def free_port() -> int:
    """Return a free port that the system gives to nobody else: they are below those of outgoing connections."""
    while True:
        port = random.SystemRandom().randrange(15_000, 30_000)
        with socket.socket() as trial:
            try:
                trial.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
