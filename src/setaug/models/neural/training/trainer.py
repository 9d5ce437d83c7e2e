"""The training loop: transformers' Trainer, with a loss and a score of our own, and runs that can be resumed."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader
from transformers import EarlyStoppingCallback, Trainer, TrainerCallback, TrainingArguments
from transformers.integrations.deepspeed import is_deepspeed_zero3_enabled
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_callback import PrinterCallback, TrainerState

from setaug.errors import ModelError
from setaug.models.model_folder import METRICS, last_checkpoint, mark_whole, reading_checkpoint, writing
from setaug.models.neural.batches import IGNORED, Batch, LengthGroups, Shares
from setaug.models.neural.training.processes import from_main, shard_as_one_group
from setaug.models.neural.training.watching import Recorder, find_best, reporters
from setaug.settings import PRECISIONS, Progress, TrainingSettings

_N_LEARNT = "n_learnt"
"""How many tokens of a batch (for a classifier, labels) are learnt."""


class SetTrainer(Trainer):
    """Train with a loss that is handed in, and score the sets that the model predicts."""

    def __init__(
        self,
        model: Any,
        data: Any,
        *,
        loss: Callable[[Any, Batch], torch.Tensor],
        score: Callable[[], dict[str, float]] | None,
        **options: Any,
    ) -> None:
        super().__init__(model=model, train_dataset=data, eval_dataset=None if score is None else [], **options)
        self.model_accepts_loss_kwargs = True  # the steps of an update are added up: `compute_loss` gives their shares
        size, n_processes = self.args.train_batch_size, self.args.world_size
        lengths = [len(ids) for ids in data.inputs]
        order = LengthGroups(lengths, size * n_processes * self.args.gradient_accumulation_steps, self.args.seed)
        self._shares = Shares(order, size, n_processes=n_processes, process=self.args.process_index)
        self.add_callback(_Epochs(data, order))
        self._data = data
        self._loss = loss
        self._score = score
        self.remove_callback(PrinterCallback)

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Return the batches of this process."""
        pin = self.args.dataloader_pin_memory
        return DataLoader(self._data, batch_sampler=self._shares, collate_fn=self._collate, pin_memory=pin)

    def _collate(self, items: list[Any]) -> Batch:
        """Make a batch; where there is no example left for this process, of any one, from which nothing is learnt."""
        batch: Batch = self.data_collator(items or [self._data[0]])
        return {**batch, _N_LEARNT: (batch["labels"] != IGNORED).sum() * bool(items)}

    def get_batch_samples(
        self, epoch_iterator: Iterator[Batch], num_batches: int, device: torch.device
    ) -> tuple[list[Batch], torch.Tensor]:
        """Return the batches of an update, and the number of tokens learnt from in all processes."""
        batches = list(islice(epoch_iterator, num_batches))
        n_learnt = torch.stack([batch[_N_LEARNT] for batch in batches]).sum()
        total: torch.Tensor = self.accelerator.reduce(n_learnt.to(device), reduction="sum")
        return batches, total

    def compute_loss(
        self, model: Any, inputs: Batch, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> torch.Tensor:
        """Return a batch's share of the mean over all tokens of an update, scaled since processes are averaged."""
        share: torch.Tensor = inputs.pop(_N_LEARNT) / num_items_in_batch * self.args.world_size
        return self._loss(model, inputs) * share

    def has_stopped(self, checkpoint: Path) -> bool:
        """Return whether patience had run out at a checkpoint; if so, load the best model."""
        with reading_checkpoint(checkpoint):
            return self._has_stopped(checkpoint)

    def _has_stopped(self, checkpoint: Path) -> bool:
        state = TrainerState.load_from_json(str(checkpoint / TRAINER_STATE_NAME))
        counts = (state.global_step, state.max_steps, state.num_train_epochs)
        if not all(type(count) is int and count > 0 for count in counts):
            raise ValueError("its state counts no steps")
        stopping = state.stateful_callbacks.get(EarlyStoppingCallback.__name__)
        if stopping is None:
            return False
        patience, n_worse = stopping["args"]["early_stopping_patience"], stopping["attributes"]
        if n_worse["early_stopping_patience_counter"] < patience:
            return False
        self.state = state
        find_best(state, str(self.args.output_dir))
        self._load_best_model()
        return True

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        with reading_checkpoint(Path(resume_from_checkpoint)):
            super()._load_from_checkpoint(resume_from_checkpoint, model)

    def _issue_warnings_after_load(self, load_result: Any) -> None:
        """Raise for weights that are missing; those that are tied to others are saved once."""
        assert self.model is not None
        weights = self.model.state_dict()
        loaded = {weights[name].data_ptr() for name in weights.keys() - set(load_result.missing_keys)}
        if missing := [name for name in load_result.missing_keys if weights[name].data_ptr() not in loaded]:
            raise ValueError(f"{len(missing)} weights are missing, such as {missing[0]}")
        super()._issue_warnings_after_load(load_result)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        with reading_checkpoint(Path(checkpoint or "")):
            super()._load_optimizer_and_scheduler(checkpoint)

    def _load_rng_state(self, checkpoint: str | None) -> None:
        with reading_checkpoint(Path(checkpoint or "")):
            super()._load_rng_state(checkpoint)

    def _load_best_model(self) -> None:
        with reading_checkpoint(Path(str(self.state.best_model_checkpoint))):
            super()._load_best_model()

    def _load_callback_state(self) -> None:
        with reading_checkpoint(Path(str(self.args.output_dir))):
            super()._load_callback_state()

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """Score the sets that the model generates for the dev data."""
        assert self._score is not None
        metrics = {f"eval_{name}": value for name, value in from_main(self._score()).items()}
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def _determine_best_metric(self, metrics: dict[str, float], trial: Any) -> bool:
        """Take the last of checkpoints with the same score as the best: little dev data cannot tell them apart."""
        is_best = super()._determine_best_metric(metrics, trial)
        if metrics.get(str(self.args.metric_for_best_model)) == self.state.best_metric:
            self.state.best_global_step = self.state.global_step
            return True
        return is_best

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """Save, mark as whole, and only then remove older ones."""
        with writing(Path(str(self.args.output_dir))):
            super()._save_checkpoint(model, trial)
        self.accelerator.wait_for_everyone()  # each writes the state of its random numbers
        if not self.args.should_save:
            return
        folder = Path(str(self.args.output_dir))
        newest = folder / f"checkpoint-{self.state.global_step}"
        mark_whole(newest)
        best = Path(self.state.best_model_checkpoint or newest).name
        for other in folder.glob("checkpoint-*"):
            if other.name not in (best, newest.name):
                shutil.rmtree(other, ignore_errors=True)


class _Epochs(TrainerCallback):
    """Set the epoch; accelerate does not where it wraps the data (to skip batches)."""

    def __init__(self, *parts: Any) -> None:
        self._parts = parts

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Let processes drop out different units."""
        if args.process_index:
            torch.manual_seed(args.seed + args.process_index)

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Set the epoch of the data and of its order."""
        for part in self._parts:
            part.begin_epoch(int(state.epoch or 0))


def _leave_mixed_precision(model: Any) -> None:
    """Remove the forward pass of mixed precision, so that the model predicts as it will when it is loaded."""
    if vars(model).pop("_original_forward", None) is not None:  # accelerate's
        del model.forward


def _check_spreading(trainer: Trainer) -> None:
    """Raise if weights would be spread over the processes in a way in which we cannot generate with them, and save."""
    if trainer.is_fsdp_enabled and not trainer.accelerator.is_fsdp2:
        raise ModelError("FSDP 1 is not supported; set fsdp_version to 2 in accelerate's configuration.")
    if is_deepspeed_zero3_enabled():
        raise ModelError("ZeRO stage 3 of DeepSpeed is not supported; use FSDP 2 instead.")


def train(
    model: Any,
    data: Any,
    *,
    settings: TrainingSettings,
    collate: Callable[[Any], Batch],
    loss: Callable[[Any, Batch], torch.Tensor],
    score: Callable[[], dict[str, float]] | None,
    folder: Path,
    resume: bool,
    progress: Progress | None = None,
    report_to: Sequence[str] = (),
) -> dict[str, Any]:
    """Train a model in place; return the record of the run.

    Parameters
    ----------
    loss
        Returns the mean loss of a model (which may be wrapped) on a batch.
    score
        Score the model on dev data; the checkpoint with the highest ``f1`` is the one that remains.
    folder
        Where checkpoints (in a folder of their own) and ``metrics.jsonl`` go.
    report_to
        Names of `TRACKERS` that get the metrics, too.

    """
    if settings.epochs is None or settings.learning_rate is None:
        raise ValueError("the training settings are not complete; call `completed` first.")
    every = "epoch" if settings.checkpoint_every is None else "steps"
    arguments = TrainingArguments(
        output_dir=str(folder / "checkpoints"),
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch_size,
        gradient_accumulation_steps=settings.accumulate,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="linear",
        warmup_steps=settings.warmup,
        weight_decay=settings.weight_decay,
        adam_epsilon=settings.adam_epsilon,
        optim="adamw_torch_fused",
        seed=settings.seed,
        logging_steps=10,
        eval_strategy="no" if score is None else every,
        eval_steps=settings.checkpoint_every,
        save_strategy=every,
        save_steps=settings.checkpoint_every or 500,
        load_best_model_at_end=score is not None,
        metric_for_best_model="eval_f1",
        greater_is_better=True,
        restore_callback_states_from_checkpoint=True,
        remove_unused_columns=False,
        dataloader_pin_memory=torch.cuda.is_available(),
        disable_tqdm=True,
        report_to="none",
        log_level="error",
        log_level_replica="error",
        gradient_checkpointing=settings.gradient_checkpointing,
        gradient_checkpointing_kwargs={"use_reentrant": False},
        use_cpu=not torch.accelerator.is_available(),  # else half precision is refused there
        **PRECISIONS[settings.precision],
    )
    arguments._n_gpu = min(arguments.n_gpu, 1)  # several in one process split batches by rows: texts, but not targets
    callbacks = [Recorder(folder / METRICS, progress), *reporters(report_to, folder)]
    if settings.patience is not None:
        callbacks.append(EarlyStoppingCallback(settings.patience))
    trainer = SetTrainer(
        model,
        data,
        loss=loss,
        score=score,
        args=arguments,
        data_collator=collate,
        callbacks=callbacks,
    )
    _check_spreading(trainer)
    if trainer.is_fsdp_enabled and model.config.is_encoder_decoder:
        shard_as_one_group(trainer.accelerator, model)
    checkpoint = last_checkpoint(folder / "checkpoints") if resume else None
    if checkpoint is None or not trainer.has_stopped(checkpoint):
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    _leave_mixed_precision(model)
    state = trainer.state
    return {
        "n_updates": state.global_step,
        "epochs": state.epoch,
        "best_f1": state.best_metric,
        "best_step": state.best_global_step if score is not None else None,
        "resumed_from": None if checkpoint is None else int(checkpoint.name.rpartition("-")[2]),
    }
