"""Random numbers that depend only on a seed and an example's index.

Each example draws from its own stream, so its orders do not depend on threads, batches or the engine. The generator is
SplitMix64; ``kernels.py`` has the compiled version of `Stream`.
"""

from typing import TypeVar

_T = TypeVar("_T")
_MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix(value: int) -> int:
    """Scramble 64 bits (the finaliser of SplitMix64)."""
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & _MASK
    return value ^ (value >> 31)


class Stream:
    """The random numbers of one example.

    Examples
    --------
    >>> stream = Stream(seed=0, index=7)
    >>> [stream.below(6) for _ in range(5)]
    [2, 0, 0, 4, 2]

    """

    def __init__(self, seed: int, index: int = 0) -> None:
        self.state = mix(mix((seed + GOLDEN) & _MASK) ^ mix((index * GOLDEN + 1) & _MASK))

    def next(self) -> int:
        """Return 64 random bits."""
        self.state = (self.state + GOLDEN) & _MASK
        return mix(self.state)

    def below(self, bound: int) -> int:
        """Return a uniform integer from 0 to bound - 1, exactly, for a bound of any size."""
        bits = (bound - 1).bit_length()
        words = (bits + 63) // 64
        while True:
            value = 0
            for _ in range(words):
                value = value << 64 | self.next()
            value >>= 64 * words - bits
            if value < bound:
                return value

    def shuffle(self, items: list[_T]) -> None:
        """Shuffle a list in place, uniformly."""
        for last in range(len(items) - 1, 0, -1):
            other = self.below(last + 1)
            items[last], items[other] = items[other], items[last]
