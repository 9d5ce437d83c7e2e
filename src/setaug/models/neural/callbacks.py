"""Set metrics on generated text inside a Hugging Face Trainer, or one that is built on it (TRL's)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, SupportsIndex

import numpy as np
import torch
from transformers import TrainerCallback

from setaug.augmenter import PairFormat, SetAugmenter
from setaug.codec import SetCodec
from setaug.examples import Data, make_examples
from setaug.metrics.sets import score_sets
from setaug.metrics.sizes import score_sizes
from setaug.models.neural.batches import IGNORED, by_length, evaluating, on_device, pad_inputs
from setaug.models.neural.constraint import SetConstraint
from setaug.predictions import Prediction

Metrics = dict[str, float]


def set_metrics(
    tokenizer: Any, *, codec: SetCodec | None = None, labels: Iterable[str] | None = None
) -> Callable[[Any], Metrics]:
    """Make a ``compute_metrics`` for a ``Seq2SeqTrainer`` with ``predict_with_generate=True``.

    It reads what the model wrote, and the targets, as sets. The trainer puts ``eval_`` before each name:

    - ``set_f1`` (the mean over the sets), ``set_micro_f1``, ``set_macro_f1``, ``set_jaccard``, ``set_exact_match``;
    - ``set_repeated``: the share of texts in which a label was written again;
    - ``set_malformed``: the share with a part that is no label;
    - ``set_unknown``: the share with a label that is not among `labels`, where these are given;
    - ``set_size_accuracy``: the share with the true size, stated or else written;
    - ``set_size_agreement_generated``: of the texts that state a size, the share that write as many labels, repeats
      included (the paper's); ``set_size_agreement_distinct``: as many different ones. Both are 0 where none states a
      size, and not there where the codec writes no sizes.

    Parameters
    ----------
    codec
        How sets are written.

    """
    codec = codec or SetCodec()
    known = None if labels is None else frozenset(labels)

    def compute_metrics(evaluated: Any) -> Metrics:
        predictions = evaluated.predictions
        outputs = predictions[0] if isinstance(predictions, tuple) else predictions
        gold = [codec.decode(text).labels for text in _texts(tokenizer, evaluated.label_ids)]
        return _score([_read(codec, text) for text in _texts(tokenizer, outputs)], gold, codec, known)

    return compute_metrics


def _texts(tokenizer: Any, ids: Any) -> list[str]:
    """Decode rows of tokens; where nothing stands, trainers write `IGNORED`."""
    tokens = np.where(np.asarray(ids) == IGNORED, _pad_token(tokenizer), ids)
    texts: list[str] = tokenizer.batch_decode(tokens, skip_special_tokens=True)
    return texts


def _pad_token(tokenizer: Any) -> Any:
    return tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id


def _read(codec: SetCodec, text: str) -> Prediction:
    read = codec.decode(text)
    return Prediction(
        labels=read.labels, size=read.size, generation=text, repeated=read.repeated, malformed=read.malformed
    )


def _score(
    predictions: Sequence[Prediction], gold: Sequence[tuple[str, ...]], codec: SetCodec, known: frozenset[str] | None
) -> Metrics:
    sets = score_sets(gold, [one.labels for one in predictions])
    sizes = score_sizes(gold, predictions, vocabulary=known)
    metrics = {
        "set_f1": sets.samples_f1,
        "set_micro_f1": sets.micro_f1,
        "set_macro_f1": sets.macro_f1,
        "set_jaccard": sets.jaccard,
        "set_exact_match": sets.exact_match,
        "set_repeated": sizes.repeated or 0.0,
        "set_malformed": sizes.malformed or 0.0,
        "set_size_accuracy": sizes.accuracy,
    }
    if codec.with_size:
        metrics["set_size_agreement_generated"] = sizes.agreement_generated or 0.0
        metrics["set_size_agreement_distinct"] = sizes.agreement_distinct or 0.0
    if known is not None:
        metrics["set_unknown"] = sizes.unknown or 0.0
    return metrics


class SetMetricsCallback(TrainerCallback):
    """Generate sets at each evaluation of a causal model, and add their metrics to those of the trainer.

    The names are those of `set_metrics` behind ``eval_``, so ``metric_for_best_model="eval_set_f1"`` chooses the
    checkpoint with the best sets. An ``EarlyStoppingCallback`` that looks at one of them must come after this callback.
    `predictions` holds what was read last.

    The main process generates, by greedy search; all processes get the metrics. A model whose weights are spread over
    processes (FSDP, ZeRO 3) cannot be used this way. Nothing random is drawn, and model, tokenizer and generators are
    left as they were.

    Parameters
    ----------
    examples
        Texts with their true sets: examples, or rows with ``text`` and ``labels``. Each costs a generation.
    tokenizer
        The model's tokenizer.
    template
        The prompt, as for the training pairs; ``{text}`` stands for the text.
    is_chat
        Whether the prompt is a user's message; by default it is one where the tokenizer has a chat template.
    system
        The system message of a chat, as for the training pairs.
    codec
        How sets are written, as for the training pairs.
    labels
        The known labels; others are counted as unknown.
    constrained
        Whether the model can write only sets (`SetConstraint`), of known labels where `labels` are given.
    sizes
        How many labels a set may have, where it is constrained; see `SetConstraint`.
    batch_size
        How many texts to write at once.
    max_new_tokens
        When to stop a text, where it is not constrained.
    log
        A function that is given the metrics too. ``trainer.log`` (then add the callback with
        ``trainer.add_callback``) hands them to TensorBoard, W&B and the like, which see an evaluation's own metrics
        before any callback can add some. Without it they are added to the evaluation's line in the log history.

    """

    def __init__(
        self,
        examples: Data,
        tokenizer: Any,
        *,
        template: str = "{text}",
        is_chat: bool | None = None,
        system: str | None = None,
        codec: SetCodec | None = None,
        labels: Iterable[str] | None = None,
        constrained: bool = False,
        sizes: SupportsIndex | Iterable[int] | None = None,
        batch_size: int = 16,
        max_new_tokens: int = 128,
        log: Callable[[Metrics], None] | None = None,
    ) -> None:
        self._examples = make_examples(examples)
        if not self._examples:
            raise ValueError("no examples to generate for.")
        self._tokenizer = tokenizer
        self._before, self._after = SetAugmenter(template=template).check().around_text
        self._is_chat = bool(tokenizer.chat_template) if is_chat is None else is_chat
        if self._is_chat and not tokenizer.chat_template:
            raise ValueError("the tokenizer has no chat template; set one, or omit is_chat=True.")
        if system is not None and not self._is_chat:
            raise ValueError("a system message requires a chat; see is_chat.")
        self._format = PairFormat(is_chat=self._is_chat, system=system)
        self._codec = codec or SetCodec()
        self._labels = None if labels is None else list(dict.fromkeys(labels))
        self._is_constrained = constrained
        self._sizes = sizes
        self._batch_size = batch_size
        self._max_new_tokens = max_new_tokens
        self._log = log
        self._constraint: SetConstraint | None = None
        self.predictions: list[Prediction] = []

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Add the metrics of generated sets to those of an evaluation."""
        from accelerate.utils import broadcast_object_list

        found: list[Metrics] = [{}]
        if state.is_world_process_zero:
            self.predictions = self.predict(kwargs["model"])
            gold = [example.labels for example in self._examples]
            known = None if self._labels is None else frozenset(self._labels)
            scores = _score(self.predictions, gold, self._codec, known)
            found = [{f"eval_{name}": value for name, value in scores.items()}]
        (metrics,) = broadcast_object_list(found)
        kwargs["metrics"].update(metrics)
        if self._log is not None:
            self._log(dict(metrics))
        elif state.log_history and state.log_history[-1].get("step") == state.global_step:
            state.log_history[-1].update(metrics)

    def prompt_ids(self, text: str) -> list[int]:
        """Return the tokens before the answer, as TRL's ``SFTTrainer`` has them in training."""
        if self._is_chat:
            return list(self._render(text, return_dict=True)["input_ids"])
        ids = list(self._tokenizer(self._before + text + self._after)["input_ids"])
        # Some tokenizers end every text; in training the completion stands in front of that end.
        return ids[:-1] if ids and ids[-1] == self._tokenizer.eos_token_id else ids

    def _render(self, text: str, **options: Any) -> Any:
        messages = self._format.prompt_messages(self._before + text + self._after)
        return self._tokenizer.apply_chat_template(messages, add_generation_prompt=True, **options)

    def predict(self, model: Any) -> list[Prediction]:
        """Let a model write a set for each example."""
        rows = [self.prompt_ids(example.text) for example in self._examples]
        options = self._options(model)
        written: dict[int, Prediction] = {}
        with evaluating(model, mode=torch.no_grad):
            for chosen in by_length(rows, self._batch_size):
                inputs = pad_inputs([rows[at] for at in chosen], options["pad_token_id"], side="left")
                outputs = model.generate(**on_device(inputs, model.device), **options)
                answers = outputs[:, inputs["input_ids"].shape[1] :].tolist()
                written.update(zip(chosen, map(self._read, answers), strict=True))
        return [replace(written[at], id=example.id) for at, example in enumerate(self._examples)]

    def _options(self, model: Any) -> dict[str, Any]:
        options: dict[str, Any] = {
            "do_sample": False,
            "num_beams": 1,
            "use_cache": True,
            "pad_token_id": _pad_token(self._tokenizer),
            "max_new_tokens": self._max_new_tokens,
        }
        if model.generation_config.eos_token_id is None:
            options["eos_token_id"] = self._tokenizer.eos_token_id
        if self._is_constrained:
            any_prompt = self._render(".", tokenize=False) if self._is_chat else self._before + "." + self._after
            self._constraint = self._constraint or SetConstraint.for_model(
                model,
                self._tokenizer,
                self._labels,
                codec=self._codec,
                sizes=self._sizes,
                before=any_prompt,
            )
            options["logits_processor"] = [self._constraint]
            options["max_new_tokens"] = self._constraint.max_new_tokens
        return options

    def _read(self, tokens: list[int]) -> Prediction:
        text = self._tokenizer.decode(tokens, skip_special_tokens=True)
        found = None if self._constraint is None else self._constraint.read(tokens)
        if found is None:
            return _read(self._codec, text)
        labels, size = found
        return Prediction(labels=labels, size=size, generation=text, repeated=(), malformed=())
