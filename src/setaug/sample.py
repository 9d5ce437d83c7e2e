"""Synthetic sample data: short news items with topics, from specific to general."""

from collections.abc import Iterator

import numpy as np

from setaug.examples import Example

_TOPICS = {
    "event": {
        "match": {
            "volleyball": "The home side won the fifth set after a long rally at the net.",
            "football": "A late goal from a free kick decided the game.",
            "tennis": "She broke serve twice and closed it out in two sets.",
        },
        "concert": {
            "opera": "The soprano got a standing ovation after the second act.",
            "jazz": "The quartet played until two and the saxophone never stopped.",
            "sonata": "The pianist took the slow movement slower than ever.",
        },
        "trial": {
            "fraud": "The jury heard how the books had been cooked for years.",
            "theft": "Three paintings were gone and the guard had slept.",
            "libel": "The paper must print an apology on its front page.",
        },
        "fair": {
            "harvest": "Pumpkins the size of a wheelbarrow were weighed at noon.",
            "books": "Two hundred publishers showed what they will print in spring.",
            "carnival": "Masks and drums filled the streets until the lamps went out.",
        },
    },
    "person": {
        "politician": {
            "senator": "The committee heard the member from the northern state.",
            "mayor": "City hall opened its doors and the head of the council spoke.",
            "minister": "The cabinet was told of the resignation over breakfast.",
        },
        "artist": {
            "painter": "Three canvases were hung before they had dried.",
            "poet": "The reading ended with a sonnet that nobody had heard before.",
            "sculptor": "The bronze was cast twice because the first one cracked.",
        },
        "scientist": {
            "chemist": "A new catalyst does the reaction at half the heat.",
            "botanist": "The orchid was thought to be lost for sixty years.",
            "geologist": "The core from the sea floor is older than the island.",
        },
        "doctor": {
            "surgeon": "The operation took nine hours and the patient is well.",
            "dentist": "Children now get their first check at the age of two.",
            "nurse": "The night shift on the ward was down to two people.",
        },
    },
    "place": {
        "city": {
            "harbour": "Two ferries were late because of fog over the docks.",
            "suburb": "New tram lines reach the outer districts this spring.",
            "market": "The stalls on the square close an hour earlier in winter.",
        },
        "mountain": {
            "glacier": "The ice has drawn back forty metres since last summer.",
            "summit": "The rope team reached the top an hour before dawn.",
            "pass": "The road over the ridge is open again after the snow.",
        },
        "river": {
            "bridge": "Lorries must take the long way round until the arch is mended.",
            "flood": "The water stood a hand below the top of the dyke.",
            "ferry": "The boatman has taken people across for forty years.",
        },
        "island": {
            "beach": "Turtles came ashore and laid their eggs above the tide line.",
            "lighthouse": "The keeper's logbook tells of every wreck since the war.",
            "volcano": "Smoke rose from the crater and two villages were cleared.",
        },
    },
}
_DAYS = ("On Monday", "On Tuesday", "Last week", "This morning", "Yesterday", "In the evening")
_ASIDES = {"weather": "It rained.", "crowd": "Thousands came.", "money": "Tickets were dear."}


def sample_examples(n: int = 2000, *, seed: int = 0) -> Iterator[Example]:
    """Yield synthetic examples with dependent labels: a specific one implies a general one.

    Examples
    --------
    >>> next(sample_examples(1))
    Example(text='This morning: Lorries must take the long way round until the arch is mended. It rained.',
        labels=('place', 'bridge', 'river', 'weather'), id=0, fields={'id': 0})

    """
    rng = np.random.default_rng(seed)
    topics = [
        (general, middle, specific, sentence)
        for general, middles in _TOPICS.items()
        for middle, specifics in middles.items()
        for specific, sentence in specifics.items()
    ]
    for number in range(n):
        general, middle, specific, sentence = topics[rng.integers(len(topics))]
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
