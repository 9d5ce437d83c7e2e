"""How good predicted sets are, and whether the difference between two models is more than chance."""

from setaug.metrics.confusions import Confusions, count_confusions
from setaug.metrics.indicators import index_labels, indicator_matrix
from setaug.metrics.keyphrases import KeyphraseScores, PhraseScores, find_present, score_keyphrases
from setaug.metrics.report import Evaluation, evaluate, match
from setaug.metrics.sets import LabelScore, SetScores, score_labels, score_sets
from setaug.metrics.significance import (
    BootstrapTest,
    Comparison,
    PermutationTest,
    ProportionTest,
    compare_proportions,
    compare_sets,
    paired_bootstrap,
    paired_permutation,
)
from setaug.metrics.sizes import SizeScores, score_sizes

__all__ = [
    "BootstrapTest",
    "Comparison",
    "Confusions",
    "Evaluation",
    "KeyphraseScores",
    "LabelScore",
    "PermutationTest",
    "PhraseScores",
    "ProportionTest",
    "SetScores",
    "SizeScores",
    "compare_proportions",
    "compare_sets",
    "count_confusions",
    "evaluate",
    "find_present",
    "index_labels",
    "indicator_matrix",
    "match",
    "paired_bootstrap",
    "paired_permutation",
    "score_keyphrases",
    "score_labels",
    "score_sets",
    "score_sizes",
]
