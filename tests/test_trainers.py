"""The files that ``setaug augment`` writes, read by the libraries that are to read them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import load_dataset
from openai.types.chat import ChatCompletionMessageParam
from pydantic import TypeAdapter
from trl import SFTConfig, SFTTrainer

from setaug import SetAugmenter
from setaug.augmenter import PairFormat
from setaug.cli import main
from setaug.models import SetMetricsCallback
from setaug.sample import sample_examples
from tests.conftest import write_examples
from tests.tiny import make_causal_model, make_chat_tokenizer

EXAMPLES = list(sample_examples(8))
TEMPLATE = "{text} Topics:"
SYSTEM = 'Name the topics, as "2 | event | fair".'
FORMATS: dict[str, list[str]] = {
    "prompt-completion": [],
    "chat": ["--system", SYSTEM],
    "chat-prompt-completion": ["--system", SYSTEM],
    "columns": ["--columns", "source", "target", "--carry", "id"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trainers")
    source = write_examples(folder / "train.jsonl", EXAMPLES)
    for name, options in FORMATS.items():
        target = folder / f"{name}.jsonl"
        command = ["augment", str(source), "-o", str(target), "--template", TEMPLATE, "--orders", "1", "-q"]
        assert main([*command, "--format", name, *options]) == 0
    return folder


def load(folder: Path, name: str) -> Any:
    path = str(folder / f"{name}.jsonl")
    return load_dataset("json", data_files=path, split="train", cache_dir=str(folder / "cache"))


@pytest.fixture
def tokenizer() -> Any:
    return make_chat_tokenizer()


def pairs() -> Iterator[tuple[str, str]]:
    """Give the text and the completion of each line of the files."""
    augmenter = SetAugmenter(n_orders=1, template=TEMPLATE).fit(EXAMPLES)
    texts = [example.text for example in EXAMPLES for _ in range(2)]
    completions = [pair.completion for pair in augmenter.augment(EXAMPLES)]
    return zip(texts, completions, strict=True)


@pytest.mark.parametrize("name", FORMATS)
def test_datasets_reads_the_pairs_of_each_format(name: str, folder: Path) -> None:
    system = SYSTEM if name.startswith("chat") else None
    pair_format = PairFormat.named(name, ("source", "target") if name == "columns" else None, system=system)
    augmenter = SetAugmenter(n_orders=1, template=TEMPLATE).fit(EXAMPLES)
    carry = ["id"] if name == "columns" else []
    rows = [pair_format.row(pair) for pair in augmenter.augment(EXAMPLES, carry=carry)]
    assert load(folder, name).to_list() == rows


@pytest.mark.parametrize(
    ("name", "options"),
    [("prompt-completion", {}), ("chat-prompt-completion", {}), ("chat", {"assistant_only_loss": True})],
)
def test_trl_trains_on_the_completions_alone(
    name: str, options: dict[str, Any], folder: Path, tokenizer: Any, tmp_path: Path
) -> None:
    is_chat = name != "prompt-completion"
    system = SYSTEM if is_chat else None
    callback = SetMetricsCallback(EXAMPLES, tokenizer, template=TEMPLATE, is_chat=is_chat, system=system)
    trainer = SFTTrainer(
        make_causal_model(tokenizer),
        args=SFTConfig(tmp_path, max_steps=2, report_to="none", use_cpu=True, bf16=False, disable_tqdm=True, **options),
        train_dataset=load(folder, name),
        processing_class=tokenizer,
    )
    for row, (text, completion) in zip(trainer.train_dataset, pairs(), strict=True):
        trained = [token for token in row["labels"] if token != -100]
        assert tokenizer.decode(trained) == completion + "</s>"
        start = len(row["input_ids"]) - len(trained)
        assert row["labels"][:start] == [-100] * start
        assert row["input_ids"][:start] == callback.prompt_ids(text)
        assert row["input_ids"][start:] == trained
    before = trainer.model.lm_head.weight.clone()
    assert trainer.train().training_loss > 0
    assert not torch.equal(trainer.model.lm_head.weight, before)


def test_trl_trains_on_the_question_too_where_messages_are_one_list(
    folder: Path, tokenizer: Any, tmp_path: Path
) -> None:
    trainer = SFTTrainer(
        make_causal_model(tokenizer),
        args=SFTConfig(tmp_path, report_to="none", use_cpu=True, bf16=False, disable_tqdm=True),
        train_dataset=load(folder, "chat"),
        processing_class=tokenizer,
    )
    for row, (text, completion) in zip(trainer.train_dataset, pairs(), strict=True):
        assert row["labels"] == row["input_ids"]
        asked = f"<s>system\n{SYSTEM}</s><s>user\n{TEMPLATE.format(text=text)}</s><s>assistant\n"
        assert tokenizer.decode(row["input_ids"]) == f"{asked}{completion}</s>"


def test_openai_finds_its_messages_and_nothing_else(folder: Path) -> None:
    lines = (folder / "chat.jsonl").read_bytes().decode("utf-8").splitlines()
    assert len(lines) >= 10
    messages = TypeAdapter(list[ChatCompletionMessageParam])
    for line, (text, completion) in zip(lines, pairs(), strict=True):
        row = json.loads(line)
        assert row.keys() == {"messages"}
        messages.validate_python(row["messages"])
        assert row["messages"] == [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": TEMPLATE.format(text=text)},
            {"role": "assistant", "content": completion},
        ]
