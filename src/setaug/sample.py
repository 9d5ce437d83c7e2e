"""Made-up examples to try things on: short news items with topics, from specific to general."""

from collections.abc import Iterator

import numpy as np

from setaug.examples import Example

_TOPICS = {
    "volleyball": ("match", "event", "The home side won the fifth set after a long rally at the net."),
    "football": ("match", "event", "A late goal from a free kick decided the game."),
    "tennis": ("match", "event", "She broke serve twice and closed it out in two sets."),
    "opera": ("concert", "event", "The soprano got a standing ovation after the second act."),
    "jazz": ("concert", "event", "The quartet played until two and the saxophone never stopped."),
    "sonata": ("concert", "event", "The pianist took the slow movement slower than ever."),
    "senator": ("politician", "person", "The committee heard the member from the northern state."),
    "mayor": ("politician", "person", "City hall opened its doors and the head of the council spoke."),
    "painter": ("artist", "person", "Three canvases were hung before the paint had dried."),
    "poet": ("artist", "person", "The reading ended with a sonnet that nobody had heard before."),
    "harbour": ("city", "place", "Two ferries were late because of fog over the docks."),
    "suburb": ("city", "place", "New tram lines reach the outer districts this spring."),
    "glacier": ("mountain", "place", "The ice has drawn back forty metres since last summer."),
    "summit": ("mountain", "place", "The rope team reached the top an hour before dawn."),
}
_DAYS = ("On Monday", "On Tuesday", "Last week", "This morning", "Yesterday", "In the evening")
_ASIDES = {"weather": "It rained.", "crowd": "Thousands came.", "money": "Tickets were dear."}


def sample_examples(n: int = 600, *, seed: int = 0) -> Iterator[Example]:
    """Make up examples whose labels depend on each other: a specific one implies a general one.

    Examples
    --------
    >>> next(sample_examples(1))
    Example(text='This morning: New tram lines reach the outer districts this spring. It rained.',
        labels=('place', 'suburb', 'city', 'weather'), id=0, fields={'id': 0})

    """
    rng = np.random.default_rng(seed)
    topics = list(_TOPICS.items())
    for number in range(n):
        specific, (middle, general, sentence) = topics[rng.integers(len(topics))]
        text = f"{_DAYS[rng.integers(len(_DAYS))]}: {sentence}"
        labels = [general]
        if rng.random() < 0.9:
            labels.append(middle)
        if rng.random() < 0.7:
            labels.append(specific)
        for label, aside in _ASIDES.items():
            if rng.random() < 0.15:
                labels.append(label)
                text += " " + aside
        rng.shuffle(labels)
        yield Example(text, tuple(labels), number, {"id": number})
