"""Finding the files, checking them, and choosing a part of them."""

from pathlib import Path

import pytest

from setaug.datasets import load_dataset
from setaug.datasets.entry import choose, make_example
from setaug.errors import DataError, FileError
from tests.datasets.made_up import GO_EMOTIONS, write_all, write_go_emotions, write_kp20k, write_ufet


@pytest.mark.parametrize("name", ["go-emotions", "ufet", "reuters", "kp20k"])
def test_all_are_found_in_one_folder_and_have_ids(name: str, tmp_path: Path) -> None:
    dataset = load_dataset(name, write_all(tmp_path), verify=False)
    assert dataset.name == name
    examples = [example for split in dataset.splits.values() for example in split]
    assert all(dataset.splits.values())
    assert len({example.id for example in examples}) == len(examples)
    assert all(example.fields == {"id": example.id} and isinstance(example.id, str) for example in examples)


def test_a_folder_of_the_name_that_lacks_the_files_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "go_emotions").mkdir()
    (tmp_path / "GoEmotions.txt").touch()
    write_go_emotions(tmp_path / "Go-Emotions (new)")
    assert len(load_dataset("go-emotions", tmp_path, verify=False).train) == 3


def test_the_folder_itself_goes_before_its_subfolders(tmp_path: Path) -> None:
    write_go_emotions(tmp_path)
    write_go_emotions(tmp_path / "goemotions")
    (tmp_path / "goemotions" / "train.tsv").write_text("")
    assert len(load_dataset("go-emotions", tmp_path, verify=False).train) == 3


@pytest.mark.parametrize(
    ("name", "files", "origin"),
    [
        ("go-emotions", "train.tsv, dev.tsv, test.tsv and emotions.txt", "google-research/google-research on GitHub"),
        ("ufet", "train.json, dev.json and test.json", "nlp.cs.washington.edu/entity_type"),
        ("reuters", "reut2-000.sgm to reut2-021.sgm", "kdd.ics.uci.edu or archive.ics.uci.edu"),
        ("kp20k", "train_src.txt, train_trg.txt", "memray/seq2seq-keyphrase"),
    ],
)
def test_files_that_are_not_there_are_named_and_where_they_are_from(
    name: str, files: str, origin: str, tmp_path: Path
) -> None:
    for folder, problem in ((tmp_path, " is not in "), (tmp_path / "nowhere", "there is no folder ")):
        with pytest.raises(FileError) as caught:
            load_dataset(name, folder)
        for part in (problem, files, f"in {folder} or {folder}/{name.replace('-', '')};", origin):
            assert part in str(caught.value)
    with pytest.raises(ValueError, match=f"{name} needs the folder of its files") as refused:
        load_dataset(name)
    assert origin in str(refused.value)


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    (write_go_emotions(tmp_path) / "dev.tsv").unlink()
    with pytest.raises(FileError, match=r"has no dev\.tsv; expected train\.tsv"):
        load_dataset("go-emotions", tmp_path)
    (write_ufet(tmp_path / "ufet") / "types.txt").unlink()
    with pytest.raises(FileError, match=r"has no types\.txt; expected train\.json"):
        load_dataset("ufet", tmp_path)


@pytest.mark.parametrize(
    ("name", "file"), [("go-emotions", "emotions.txt"), ("ufet", "types.txt"), ("reuters", "reut2-000.sgm")]
)
def test_files_that_are_not_the_authors_are_refused(name: str, file: str, tmp_path: Path) -> None:
    with pytest.raises(
        FileError, match=rf"{file} is not the file that its authors distribute: its SHA-256 .* --no-verify \(verify="
    ):
        load_dataset(name, write_all(tmp_path))


def test_keyphrases_come_in_versions_so_they_are_not_checked(tmp_path: Path) -> None:
    assert load_dataset("kp20k", write_kp20k(tmp_path)).train


def test_filters_keep_a_part_of_all_splits(tmp_path: Path) -> None:
    dataset = load_dataset("go-emotions[train1,min2]", write_go_emotions(tmp_path), verify=False)
    assert dataset.name == "go-emotions[min2,train1]"
    assert [example.id for example in dataset.train] in (["a1"], ["a3"])
    assert dataset.dev == []
    assert [example.id for example in dataset.test] == ["c2"]
    assert dataset.labels == ("joy", "pride", "fear", "grief")


def test_present_and_absent_phrases_are_told_apart_before_they_are_counted(tmp_path: Path) -> None:
    write_kp20k(tmp_path)
    present, absent = (load_dataset(f"kp20k[{kind}]", tmp_path) for kind in ("present", "absent"))
    assert [example.labels for example in present.train] == [("sorting network",), ()]
    assert [example.labels for example in absent.train] == [("parallel algorithm", "hardware"), ("dictionary",)]
    assert [example.id for example in load_dataset("kp20k[min2,absent]", tmp_path).train] == ["train-1"]
    assert load_dataset("kp20k[min2,present]", tmp_path).train == []


def test_more_examples_than_there_are_cannot_be_taken(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\[min2,train3\] requires 3 training examples, but there are only 2\."):
        load_dataset("go-emotions[min2,train3]", write_go_emotions(tmp_path), verify=False)


def test_the_examples_that_are_chosen_never_change() -> None:
    examples = [make_example("", (), f"id-{number}") for number in range(1000)]
    chosen = choose(examples, 100)
    assert [example.id for example in chosen[:5]] == ["id-5", "id-28", "id-31", "id-69", "id-78"]
    assert chosen == sorted(chosen, key=examples.index)
    assert choose(examples[::-1], 100) == chosen[::-1]  # nor depend on what stands where
    assert choose(chosen, 50) == choose(examples, 50)  # and fewer are a part of more
    assert choose(examples, 0) == []


def test_ids_that_two_examples_share_are_refused(tmp_path: Path) -> None:
    write_go_emotions(tmp_path)
    (tmp_path / "dev.tsv").write_text("\t".join(GO_EMOTIONS["train"][0]) + "\n")
    with pytest.raises(DataError, match='go-emotions: example 1 of dev has a duplicate id, "a1"'):
        load_dataset("go-emotions", tmp_path, verify=False)


def test_a_folder_and_a_download_contradict_each_other(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not both"):
        load_dataset("go-emotions", tmp_path, download=True)
