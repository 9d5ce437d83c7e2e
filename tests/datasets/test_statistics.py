from setaug import Example
from setaug.datasets import Dataset, DatasetStatistics, dataset_statistics, statistics_table


def test_all_splits_count() -> None:
    sets = [["a", "b"], ["b"], []]
    train, dev, test = ([Example("", labels)] for labels in sets)
    found = dataset_statistics(Dataset(name="x", train=train, dev=dev, test=test + test, labels=None))
    assert found == DatasetStatistics(
        mean_labels=0.75, min_labels=0, max_labels=2, n_labels=2, n_train=1, n_test=2, n_dev=1
    )


def test_nothing_has_statistics_too() -> None:
    found = dataset_statistics(Dataset(name="x", train=[], dev=[], test=[], labels=None))
    assert (found.mean_labels, found.max_labels, found.n_labels) == (0.0, 0, 0)


def test_the_papers_numbers_stand_below_those_found() -> None:
    found = DatasetStatistics(
        mean_labels=1 / 3, min_labels=0, max_labels=9, n_labels=1234, n_train=1000, n_test=20, n_dev=3
    )
    first, second, *rows = statistics_table({"kp20k": found, "kp20k[absent,min3]": found}).splitlines()
    assert set(second) == {"|", "-"}
    assert "train / test / dev" in first
    cells = [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows]
    assert cells == [
        ["kp20k", "found", "0.33 / 0 / 9", "1,234", "1,000 / 20 / 3"],
        ["kp20k[absent,min3]", "found", "0.33 / 0 / 9", "1,234", "1,000 / 20 / 3"],
        ["", "paper", "3.87 / 3 / 79", "274k", "156k / 2k / 2k"],
    ]
