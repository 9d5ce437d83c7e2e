"""Each value of the paper in the tables of the experiments is the one that the paper prints, and none is missing."""

from statistics import fmean

import pytest

from setaug.experiments.reproduction.comparison import PAPER_LEVEL
from setaug.experiments.reproduction.experiment import EXPERIMENTS, read_experiment
from setaug.metrics import compare_proportions
from tests.experiments.paper_tables import read_tables

Values = dict[tuple[str, str, str], float]
"""A value by data set, row and score."""

PAPER = read_tables()
DATA = {"go-emotions[min3]": "go-emotions", "ufet[min2]": "openent", "reuters[min2]": "reuters"}
DETAILED = {"go-emotions[min3]": "table-10", "reuters[min2]": "table-11", "ufet[min2]": "table-12"}
CLASSIFIERS = {"encoder": "bert", "encoder-decoder": "bart"}
KS = (1, 3, 5, 10, 20, 50)
WRITERS = {
    "set search": "set search",
    "seq2seq": "seq2seq",
    "random": "random - card",
    "setaug": "setaug - card",
    "seq2seq + size": "seq2seq + card",
    "random + size": "random + card",
    "setaug + size": "setaug + card",
}
LARGE = {"seq2seq, T5-11B in the paper": "t5-11b", "setaug + size, T5-11B in the paper": "t5-11b + setaug"}
MEASURES = {"p": "precision", "r": "recall", "f": "f1"}


def average(data: str) -> str:
    """Return what the paper calls macro on a data set."""
    return "samples" if DATA[data] == "openent" else "macro"


def main() -> Values:
    values: Values = {}
    for data, name in DATA.items():
        for row, printed in WRITERS.items():
            cells = PAPER[DETAILED[data]][printed]
            for kind, score in (("micro", "micro"), ("macro", average(data))):
                for letter, measure in MEASURES.items():
                    values[data, row, f"{score}_{measure}"] = cells[f"{kind} {letter}"]
            values[data, row, "jaccard"] = cells["jaccard"]
            if name == "go-emotions":  # two columns that repeat others
                assert values.pop((data, row, "micro_f1")) == pytest.approx(cells["macro p"], abs=0.051)
                assert values.pop((data, row, "jaccard")) == pytest.approx(cells["macro f"], abs=0.051)
        for row, printed in CLASSIFIERS.items():
            values[data, f"multi-label, {row}", "samples_f1"] = best_f(printed, name)
        for row, printed in (("mean over k", "multi-label"), ("true size", "multi-label-k*")):
            for letter, measure in MEASURES.items():
                value = PAPER["table-9"][printed][f"{name} {letter}"]
                values[data, f"multi-label, {row}, in the paper", f"samples_{measure}"] = value
        for row, printed in LARGE.items():
            values[data, row, f"{average(data)}_f1"] = PAPER["table-2"][printed][name]
    return values


def best_f(classifier: str, name: str) -> float:
    """Return the highest F over k."""
    rows = (PAPER["table-13"][f"{classifier}@{k}"] for k in KS)
    return max(row[f"{name} f"] for row in rows if f"{name} f" in row)


def ablation() -> Values:
    names = {
        "setaug + size": "setaug",
        "without the size": "- card",
        "without TSAMPLE (seq2seq + size)": "- tsample",
        "random orders": "random",
        "frequent first": "freq",
    }
    return {
        (data, row, f"{average(data)}_f1"): PAPER["table-4"][printed][name]
        for data, name in DATA.items()
        for row, printed in names.items()
    }


def multilabel_k() -> Values:
    values: Values = {}
    for data, name in DATA.items():
        rows = {f"{row}, best {k}": f"{printed}@{k}" for row, printed in CLASSIFIERS.items() for k in KS}
        rows |= {f"{row}, mean over k, in the paper": printed for row, printed in CLASSIFIERS.items()}
        cells = {row: PAPER["table-13"][printed] for row, printed in rows.items()}
        cells["encoder-decoder, true size"] = PAPER["table-9"]["multi-label-k*"]
        for row, found in cells.items():
            for letter, measure in MEASURES.items():
                if f"{name} {letter}" in found:
                    values[data, row, f"samples_{measure}"] = found[f"{name} {letter}"]
        for row, printed in CLASSIFIERS.items():
            values[data, f"{row}, k by dev", "samples_f1"] = best_f(printed, name)
    # A surplus cell of its row, under the precision on Reuters; notes say so.
    assert values.pop(("reuters[min2]", "encoder, best 50", "samples_precision")) == 8.9
    return values


def few_shot() -> Values:
    names = {"random orders": "random orders", "topological orders": "tsample"}
    return {
        (data, row, f"{average(data)}_f1"): PAPER["text"][f"few-shot, {DATA[data]}, {printed}"]["value"]
        for data in ("go-emotions[min3]", "ufet[min2]")
        for row, printed in names.items()
    }


def keyphrases() -> Values:
    names = {
        "One2Set, as the paper quotes it": "ye et al.",
        "seq2seq": "bart",
        "setaug + size": "bart + setaug",
    }
    scores = {"absent_f1_at_m": "first row", "present_f1_at_m": "second row"}
    detailed = {
        ("kp20k[absent,min3]", row, f"samples_{measure}"): PAPER["table-9"][row.replace("size", "card")][
            f"keygen {letter}"
        ]
        for row in WRITERS
        for letter, measure in MEASURES.items()
    }
    return detailed | {
        ("kp20k", row, score): PAPER["table-3"][line][column]
        for row, column in names.items()
        for score, line in scores.items()
    }


def size() -> Values:
    text = {name: cells["value"] for name, cells in PAPER["text"].items()}
    both = text["agreement, go-emotions and reuters on average"]
    printed = {
        ("go-emotions[min3]", ""): both,
        ("reuters[min2]", ""): both,
        ("ufet[min2]", ""): text["agreement, openent"],
        ("ufet[min2]", "_within_one"): text["agreement within one, openent"],
    }
    return {
        (data, "setaug + size", name + within): value
        for (data, within), value in printed.items()
        for name in ("agreement", "agreement_generated")
    }


PRINTED = {
    "main": main,
    "ablation": ablation,
    "multilabel-k": multilabel_k,
    "few-shot": few_shot,
    "keyphrases": keyphrases,
    "size": size,
}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_tables_have_the_values_that_the_paper_prints(name: str) -> None:
    ours = {
        (data, row, score): value
        for data, rows in read_experiment(name).paper.items()
        for row, scores in rows.items()
        for score, value in scores.items()
    }
    assert ours == (PRINTED[name]() if name in PRINTED else {})


def test_the_paper_s_tables_disagree_in_these_cells_only() -> None:
    """Tables 2, 4, 5 and 8 repeat cells of Table 9, and Table 9 those of Tables 10 to 13, with fewer digits."""
    repeated = {"bart": "seq2seq", "bart + setaug": "setaug + card", "- card": "setaug", "- tsample": "seq2seq + card"}
    repeated |= {"multi-label@oracle-k": "multi-label-k*", "random": "random + card"}
    ours = {"table-4": {"setaug": "setaug + card"}}
    found = set()
    for table in ("table-2", "table-4", "table-5", "table-8"):
        for row, cells in PAPER[table].items():
            source = PAPER["table-9"].get(ours.get(table, {}).get(row, repeated.get(row, row)), {})
            found |= {(table, row, name) for name, value in cells.items() if source.get(f"{name} f", value) != value}
    for data, name in DATA.items():
        for row, printed in WRITERS.items():
            cells, other = (PAPER[table][row.replace("size", "card")] for table in ("table-9", "table-13"))
            for letter in MEASURES:
                detailed = PAPER[DETAILED[data]][printed][f"macro {letter}"]
                assert cells[f"{name} {letter}"] == other[f"{name} {letter}"]
                if abs(detailed - cells[f"{name} {letter}"]) > 0.1:  # some are cut off, not rounded
                    found.add(("table-9", row, f"{name} {letter}"))
    assert found == {("table-9", "setaug", f"openent {letter}") for letter in MEASURES}


def test_the_rows_without_a_k_are_means_over_k_but_for_one_slip() -> None:
    """By the caption of Table 13; MULTI-LABEL in Tables 5, 8 and 9 is the mean of BART. Table 2 has the best k."""
    rows = PAPER["table-13"]
    missed = {}
    for classifier in CLASSIFIERS.values():
        for column, printed in rows[classifier].items():
            ks = KS if column.startswith("openent") else KS[:-1]
            mean = fmean(rows[f"{classifier}@{k}"][column] for k in ks)
            if abs(mean - printed) > 0.1:  # each term is rounded, too
                missed[classifier, column] = round(printed - mean, 1)
    assert missed == {("bart", "go-emotions p"): 1.3, ("bart", "go-emotions r"): 0.1}
    columns = [f"{name} f" for name in DATA.values()]
    mean_f = [rows["bart"][column] for column in columns]
    assert mean_f == [PAPER["table-9"]["multi-label"][column] for column in columns]
    assert mean_f == list(PAPER["table-5"]["multi-label"].values()) == list(PAPER["table-8"]["multi-label"].values())
    best = {classifier: [best_f(classifier, name) for name in DATA.values()] for classifier in CLASSIFIERS.values()}
    assert best == {"bert": [25.7, 16.4, 25.5], "bart": [25.6, 16.2, 25.2]}
    table_2 = {row: list(PAPER["table-2"][f"multi-label ({row})"].values()) for row in best}
    assert table_2 == {"bert": [25.7, 16.2, 25.5], "bart": [25.6, 16.4, 25.2]}  # those of UFET are exchanged


def test_the_gain_of_20_per_cent_is_the_mean_of_ten() -> None:
    """BART and T5-11B on three data sets, BART on present and absent keyphrases, GPT-3 on two data sets."""
    table_2, table_3, text = PAPER["table-2"], PAPER["table-3"].values(), PAPER["text"]
    pairs = [
        (table_2[model][name], table_2[f"{model} + setaug"][name])
        for model in ("bart", "t5-11b")
        for name in DATA.values()
    ]
    pairs += [(row["bart"], row["bart + setaug"]) for row in table_3]
    orders = ("random orders", "tsample")
    pairs += [
        tuple(text[f"few-shot, {name}, {kind}"]["value"] for kind in orders) for name in ("openent", "go-emotions")
    ]
    gains = [100 * (after / before - 1) for before, after in pairs]
    assert [round(gain) for gain in gains] == [28, 20, 71, 6, 6, 7, 23, 8, 16, 14]
    assert fmean(gains) == pytest.approx(20.0, abs=0.05)


def test_f_as_a_share_of_the_test_examples_explains_some_of_what_is_underlined() -> None:
    """Against the same model without SETAUG, BART's F and GPT-3's are as underlined; those of T5-11B are not."""
    sizes = {"go-emotions": 63, "openent": 1998, "reuters": 436}

    def is_significant(name: str, before: float, after: float) -> bool:
        hits = [round(value * sizes[name] / 100) for value in (before, after)]
        return compare_proportions(hits[0], sizes[name], hits[1], sizes[name]).p_one_sided < PAPER_LEVEL

    table, text = PAPER["table-2"], PAPER["text"]
    found = {
        model: [is_significant(name, table[model][name], table[f"{model} + setaug"][name]) for name in sizes]
        for model in ("bart", "t5-11b")
    }
    assert found == {"bart": [False, True, True], "t5-11b": [False, False, False]}  # underlined: the last two of each
    for name, is_named in (("openent", True), ("go-emotions", False)):
        values = [text[f"few-shot, {name}, {kind}"]["value"] for kind in ("random orders", "tsample")]
        assert is_significant(name, *values) == is_named
    # "The strongest baseline", on Reuters: a classifier.
    assert not is_significant("reuters", table["multi-label (bert)"]["reuters"], table["bart + setaug"]["reuters"])
    # Underlined recall on UFET, and F of seq2seq + size, which is not underlined.
    rows = PAPER["table-9"]
    assert not is_significant("openent", rows["seq2seq"]["openent r"], rows["setaug + card"]["openent r"])
    assert is_significant("openent", rows["seq2seq"]["openent f"], rows["seq2seq + card"]["openent f"])


def test_setaug_with_the_size_is_best_in_f_but_not_in_precision_and_recall() -> None:
    """The caption of Table 9 says best overall; the highest of each column by row."""
    rows = PAPER["table-9"]
    best = {
        column: max((row for row in rows if column in rows[row]), key=lambda row, c=column: rows[row][c])
        for column in rows["setaug + card"]
    }
    assert {row for column, row in best.items() if column.endswith(" f")} == {"setaug + card"}
    others = [best[f"{name} {letter}"] for letter in "pr" for name in (*DATA.values(), "keygen")]
    assert others == [
        "setaug",
        "random + card",
        "setaug + card",
        "setaug + card",
        "multi-label",
        "setaug + card",
        "multi-label",
        "set search",
    ]
