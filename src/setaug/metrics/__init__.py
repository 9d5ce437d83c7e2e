"""Scores of predicted sets, and tests of the difference between two models.

As in scikit-learn, the true sets come first: ``score_sets(gold, predicted)``.
"""

from setaug.metrics.confusions import Confusions, count_confusions
from setaug.metrics.indicators import index_labels, indicator_matrix
from setaug.metrics.keyphrases import KeyphraseScores, PhraseScores, find_present, score_keyphrases
from setaug.metrics.rankings import RankingScores, score_rankings
from setaug.metrics.report import Evaluation, evaluate, match
from setaug.metrics.sets import LabelScore, SetScores, score_labels, score_sets
from setaug.metrics.significance import (
    BootstrapTest,
    Comparison,
    PairedScores,
    PermutationTest,
    ProportionTest,
    compare_proportions,
    compare_sets,
)
from setaug.metrics.sizes import SizeScores, score_sizes

__all__ = [
    "BootstrapTest",
    "Comparison",
    "Confusions",
    "Evaluation",
    "KeyphraseScores",
    "LabelScore",
    "PairedScores",
    "PermutationTest",
    "PhraseScores",
    "ProportionTest",
    "RankingScores",
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
    "score_keyphrases",
    "score_labels",
    "score_rankings",
    "score_sets",
    "score_sizes",
]
