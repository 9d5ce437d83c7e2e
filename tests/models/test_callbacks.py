"""Set metrics within real trainers, on tiny models."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset
from transformers import (
    DataCollatorForSeq2Seq,
    EvalPrediction,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    TrainerCallback,
)
from trl import SFTConfig, SFTTrainer

from setaug import Example, SetAugmenter, SetCodec
from setaug.augmenter import PairFormat
from setaug.models import SetMetricsCallback, set_metrics
from setaug.models.neural.scratch import train_tokenizer
from tests.tiny import make_causal_model, make_chat_tokenizer, make_model, make_tokenizer

LABELS = ["volleyball", "match", "event", "New York"]
EXAMPLES = [
    Example("They won in five sets.", ["event", "volleyball", "match"], id="a"),
    Example("The city never sleeps.", ["New York"], id="b"),
    Example("The fair opens, and nobody comes; then it rains.", ["event"]),
    Example("Nothing.", []),
]
QUIET = {"report_to": "none", "use_cpu": True, "bf16": False, "disable_tqdm": True}


def make_dataset(tokenizer: Any, *, is_chat: bool) -> Dataset:
    pair_format = PairFormat.named("chat-prompt-completion" if is_chat else "prompt-completion")
    pairs = SetAugmenter(n_orders=0, template="{text} Labels:").fit(EXAMPLES).augment(EXAMPLES)
    return Dataset.from_list([pair_format.row(pair) for pair in pairs])


def make_trainer(tokenizer: Any, folder: Path, *, is_chat: bool, **options: Any) -> SFTTrainer:
    data = make_dataset(tokenizer, is_chat=is_chat)
    arguments = {"per_device_train_batch_size": 4, **QUIET, **options}
    return SFTTrainer(
        make_causal_model(tokenizer),
        args=SFTConfig(folder, **arguments),
        train_dataset=data,
        eval_dataset=data,
        processing_class=tokenizer,
    )


def make_callback(tokenizer: Any, **options: Any) -> SetMetricsCallback:
    return SetMetricsCallback(EXAMPLES, tokenizer, template="{text} Labels:", **{"max_new_tokens": 24, **options})


def test_metrics_are_those_of_the_sets_that_were_written() -> None:
    tokenizer = make_tokenizer("bytes")
    written = ["2 | event | match", "1 | x | x", "not a label"]
    gold = ["2 | match | event", "2 | x | York", "0"]
    label_ids = tokenizer(gold, padding=True, return_tensors="np")["input_ids"]
    label_ids = np.where(label_ids == tokenizer.pad_token_id, -100, label_ids)
    outputs = tokenizer(written, padding=True, return_tensors="np")["input_ids"]
    outputs = np.pad(outputs, ((0, 0), (0, 2)), constant_values=-100)  # as a trainer joins batches
    compute_metrics = set_metrics(tokenizer, labels=["event", "match", "x", "York"])
    metrics = compute_metrics(EvalPrediction((outputs, None), label_ids))
    assert metrics == {
        "set_f1": pytest.approx((1 + 2 / 3 + 0) / 3),
        "set_micro_f1": pytest.approx(2 * 3 / (4 + 4)),
        "set_macro_f1": pytest.approx(3 / 4),
        "set_jaccard": pytest.approx((1 + 1 / 2 + 0) / 3),
        "set_exact_match": pytest.approx(1 / 3),
        "set_repeated": pytest.approx(1 / 3),
        "set_malformed": 0,
        "set_size_accuracy": pytest.approx(1 / 3),
        "set_size_agreement_generated": 0.5,  # "1 | x | x" generates two
        "set_size_agreement_distinct": 1,
        "set_unknown": pytest.approx(1 / 3),
    }
    assert all(type(value) is float for value in metrics.values())


def test_what_cannot_be_told_is_not_among_the_metrics() -> None:
    tokenizer = make_tokenizer("bytes")
    ids = tokenizer(["event; match"], return_tensors="np")["input_ids"]
    metrics = set_metrics(tokenizer, codec=SetCodec(separator="; ", with_size=False))(EvalPrediction(ids, ids))
    assert metrics["set_exact_match"] == 1
    assert not {"set_size_agreement_generated", "set_size_agreement_distinct", "set_unknown"} & metrics.keys()


def test_a_seq2seq_trainer_takes_columns_and_gives_set_metrics(tmp_path: Path) -> None:
    tokenizer = make_tokenizer("bytes")
    model = copy.deepcopy(make_model("bart"))
    pair_format = PairFormat.named("columns", ("source", "target"))
    pairs = SetAugmenter(n_orders=1).fit(EXAMPLES).augment(EXAMPLES)
    rows = Dataset.from_list([pair_format.row(pair) for pair in pairs])
    data = rows.map(
        lambda row: tokenizer(row["source"], text_target=row["target"]), remove_columns=["source", "target"]
    )
    arguments = Seq2SeqTrainingArguments(
        tmp_path, max_steps=1, eval_strategy="steps", predict_with_generate=True, generation_max_length=12, **QUIET
    )
    trainer = Seq2SeqTrainer(
        model,
        arguments,
        data_collator=DataCollatorForSeq2Seq(tokenizer, model),
        train_dataset=data,
        eval_dataset=data,
        compute_metrics=set_metrics(tokenizer, labels=LABELS),
        processing_class=tokenizer,
    )
    trainer.train()
    metrics = trainer.evaluate()
    assert 0 <= metrics["eval_set_f1"] <= 1
    assert metrics["eval_set_unknown"] > 0.5  # it has learnt nothing


@pytest.mark.parametrize("is_chat", [False, True])
def test_a_model_that_knows_its_lines_by_heart_gets_all_sets_right(is_chat: bool, tmp_path: Path) -> None:
    tokenizer = make_chat_tokenizer() if is_chat else make_tokenizer("bytes")
    options = {"max_steps": 80, "learning_rate": 1e-2, "lr_scheduler_type": "constant", "save_strategy": "no"}
    trainer = make_trainer(tokenizer, tmp_path, is_chat=is_chat, **options)
    trainer.train()
    callback = make_callback(tokenizer, batch_size=3)
    trainer.add_callback(callback)
    metrics = trainer.evaluate()
    assert [set(one.labels) for one in callback.predictions] == [set(example.labels) for example in EXAMPLES]
    assert [one.id for one in callback.predictions] == ["a", "b", None, None]
    assert metrics["eval_set_f1"] == metrics["eval_set_exact_match"] == metrics["eval_set_size_agreement_distinct"] == 1
    constrained = make_callback(tokenizer, labels=LABELS, constrained=True)
    assert [one.labels for one in constrained.predict(trainer.model)] == [one.labels for one in callback.predictions]


def test_the_best_checkpoint_is_that_of_the_best_sets(tmp_path: Path) -> None:
    tokenizer = make_chat_tokenizer()
    options = {"eval_strategy": "steps", "eval_steps": 2, "save_steps": 2, "max_steps": 6, "learning_rate": 1e-2}
    best = {"metric_for_best_model": "eval_set_f1", "load_best_model_at_end": True}
    trainer = make_trainer(tokenizer, tmp_path, is_chat=True, **options, **best)
    trainer.add_callback(make_callback(tokenizer, labels=LABELS, constrained=True, sizes=range(1, 4)))
    trainer.train()
    scores = {line["step"]: line["eval_set_f1"] for line in trainer.state.log_history if "eval_loss" in line}
    assert list(scores) == [2, 4, 6]
    assert trainer.state.best_metric == max(scores.values())
    assert scores[trainer.state.best_global_step] == max(scores.values())
    last = trainer.state.log_history[-2]
    assert (last["eval_set_repeated"], last["eval_set_unknown"], last["eval_set_size_agreement_distinct"]) == (0, 0, 1)


def test_the_trainers_own_log_tells_all_who_listen(tmp_path: Path) -> None:
    class Reporter(TrainerCallback):
        heard: list[dict[str, float]] = []  # noqa: RUF012

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
            self.heard.append(dict(logs))

    tokenizer = make_tokenizer("bytes")
    trainer = make_trainer(tokenizer, tmp_path, is_chat=False)
    trainer.add_callback(reporter := Reporter())
    trainer.add_callback(make_callback(tokenizer, log=trainer.log))
    metrics = trainer.evaluate()
    assert [line.get("eval_set_f1") for line in reporter.heard] == [None, metrics["eval_set_f1"]]
    assert trainer.state.log_history[-1]["eval_set_f1"] == metrics["eval_set_f1"]


@pytest.mark.parametrize("is_training", [False, True])
def test_model_tokenizer_and_generators_are_left_as_they_were(is_training: bool) -> None:
    tokenizer = make_chat_tokenizer()
    model = make_causal_model(tokenizer).train(is_training)
    settings = model.generation_config.to_dict()
    state = torch.random.get_rng_state()
    make_callback(tokenizer).predict(model)
    assert model.training == is_training
    assert model.generation_config.to_dict() == settings
    assert tokenizer.padding_side == "right"
    assert torch.equal(torch.random.get_rng_state(), state)
    model(input_ids=torch.tensor([[5, 6, 7]]), labels=torch.tensor([[5, 6, 7]])).loss.backward()


def test_padding_does_not_change_what_is_written() -> None:
    tokenizer = make_chat_tokenizer()
    model = make_causal_model(tokenizer)
    alone, together = (make_callback(tokenizer, batch_size=size).predict(model) for size in (1, 4))
    assert alone == together


def test_an_end_that_a_tokenizer_adds_does_not_stand_before_the_answer() -> None:
    tokenizer = train_tokenizer([example.text for example in EXAMPLES])
    callback = make_callback(tokenizer)
    ids = callback.prompt_ids("They won.")
    assert tokenizer.eos_token_id not in ids
    assert tokenizer.decode(ids).strip() == "They won. Labels:"


def test_mistakes_are_told_before_any_training() -> None:
    tokenizer = make_tokenizer("bytes")
    with pytest.raises(ValueError, match="a system message requires a chat"):
        SetMetricsCallback(EXAMPLES, tokenizer, system="Be brief.")
    with pytest.raises(ValueError, match="the tokenizer has no chat template"):
        SetMetricsCallback(EXAMPLES, tokenizer, is_chat=True)
    with pytest.raises(ValueError, match="no examples"):
        SetMetricsCallback([], tokenizer)
    with pytest.raises(ValueError, match="template must contain"):
        SetMetricsCallback(EXAMPLES, tokenizer, template="Labels:")
