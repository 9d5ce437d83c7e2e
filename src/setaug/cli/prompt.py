"""Predict the label set of each text with a language model and a few-shot prompt, without training.

Any OpenAI-compatible server works: a hosted one, vLLM, llama.cpp, transformers serve. The prompt contains some of the
training examples: the number of labels, then the labels in an informative order (specific before general, from the
statistics of the whole training file). The answers are parsed as sets.

Each answer is cached in a file as it arrives. Run the same command again to continue an interrupted run; no request is
repeated. The key comes from the environment (OPENAI_API_KEY) and is never written.
"""

import argparse
import os
import sys
from itertools import chain
from typing import TYPE_CHECKING, Any

from setaug.cli.shared.options import (
    UsageError,
    add_input,
    add_ordering,
    add_server,
    add_thresholds,
    add_written_form,
    checking_options,
    counted,
    make_augmenter,
    make_endpoint,
    read_input,
    skipped_lines,
)
from setaug.cli.shared.scoring import named_vocabulary, warn_of_joined
from setaug.cli.shared.settings_options import add_settings, given_settings
from setaug.progress import progress_bar
from setaug.settings import Decoding
from setaug.terminal import printable, tell

if TYPE_CHECKING:
    from setaug.examples import Example
    from setaug.prompting import PromptedSetModel, PromptReport

EXAMPLES = """\
examples:
  setaug prompt --train train.jsonl test.jsonl --model gpt-4.1-mini --dry-run
  setaug prompt --train train.jsonl test.jsonl --model gpt-4.1-mini -o predictions.jsonl
  setaug prompt --train train.jsonl test.jsonl --model my-model --base-url http://localhost:8000/v1 -o predictions.jsonl
  setaug prompt --train train.jsonl test.jsonl --model my-model --base-url http://localhost:8000/v1 \\
      --endpoint completion --samples 8 --concurrency 32 -o probabilities.jsonl
  setaug prompt --train train.jsonl corpus/ more.jsonl --model gpt-4.1-mini -o predictions.jsonl
  setaug prompt --train train.jsonl test.jsonl --model o4-mini -o predictions.jsonl \\
      --request '{"max_tokens": null, "temperature": null, "max_completion_tokens": 2000}'
  setaug evaluate predictions.jsonl test.jsonl
"""

INTERRUPTED = "received answers are kept; run the same command again to continue"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_input(parser, are_many=True)
    parser.add_argument(
        "--train", required=True, metavar="FILE", help="labelled examples; some are shown in the prompt"
    )
    parser.add_argument("--model", required=True, metavar="NAME", help="name of the model on the server")
    parser.add_argument("-o", "--output", default="-", metavar="FILE", help="output file, JSONL [standard output]")
    parser.add_argument(
        "--answers",
        metavar="FILE",
        help="cache of the answers [OUTPUT.answers.jsonl; setaug-answers.jsonl for standard output]",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print the exact prompt for the first text; send nothing"
    )
    group = parser.add_argument_group("server")
    group.add_argument(
        "--endpoint",
        choices=("chat", "completion"),
        default="chat",
        help="chat messages, or one text to complete [chat]",
    )
    add_server(group)
    group = parser.add_argument_group("prompt")
    group.add_argument("--shots", type=int, default=24, metavar="N", help="examples in the prompt [24]")
    group.add_argument(
        "--shot-choice",
        choices=("random", "cover"),
        default="random",
        help="choose the examples at random, or to cover many labels [random]",
    )
    add_ordering(group, "how to order the labels of an example")
    add_thresholds(group)
    group.add_argument(
        "--size", action=argparse.BooleanOptionalAction, default=True, help="write the set's size first [yes]"
    )
    add_written_form(group)
    group.add_argument("--template", default="{text}", metavar="TEXT", help="template of a text in the prompt [{text}]")
    group.add_argument(
        "--instruction", metavar="TEXT", help="the instruction; {labels} is replaced by the list of labels; '' for none"
    )
    group.add_argument(
        "--max-listed", type=int, default=200, metavar="N", help="list the labels if there are at most N [200]"
    )
    group.add_argument(
        "--vocabulary",
        default="closed",
        metavar="closed|open|FILE",
        help="closed: the training labels; open: any text; FILE: the training labels and those in FILE, one per line"
        " [closed]",
    )
    group.add_argument("--seed", type=int, default=0, metavar="N", help="seed for examples and orders [0]")
    group = parser.add_argument_group("answers")
    group.add_argument(
        "--unknown",
        choices=("keep", "drop"),
        default="keep",
        help="labels that match no label of the vocabulary, ignoring case and spacing [keep]",
    )
    group.add_argument(
        "--constrain",
        action="store_true",
        help="constrain the answers to sets; requires setaug serve, or vLLM or transformers serve set up for it",
    )
    group.add_argument("--max-tokens", type=int, default=256, metavar="N", help="maximum length of an answer [256]")
    group.add_argument("--temperature", type=float, metavar="T", help="sampling temperature [0; 1 with --samples]")
    group.add_argument(
        "--samples",
        type=int,
        default=0,
        metavar="K",
        help="sample K answers per text, and return a probability for each label",
    )
    add_settings(group, Decoding, only=("choose", "threshold", "k"))
    group.add_argument("-q", "--quiet", action="store_true", help="no summary, except of bad lines")


def run(options: argparse.Namespace) -> None:
    """Predict a file."""
    from setaug.examples import Skipped
    from setaug.predictions import write_predictions
    from setaug.prompting.endpoint import Teller
    from setaug.storage import check_jsonl
    from setaug.vocabulary import unwarned

    check_jsonl(options.output)
    model = _make_model(options)
    skipped = Skipped() if options.skip_bad else None
    train = _read(options, [options.train], skipped, are_labelled=True)
    warn_of_joined(train)
    with unwarned():
        model.fit(train)
    texts = _read(options, options.input, skipped, are_labelled=False)
    if options.dry_run:
        _show(model, texts)
        return
    answers = _answers(options)
    with progress_bar("waiting for the first answer") as progress:
        predictions = model.predict(texts, answers=answers, progress=progress, tell=Teller(sys.stderr.write))
    write_predictions(options.output, predictions)
    if not options.quiet:
        tell(*_summary(model.report_, model))
    tell(*skipped_lines(skipped))


def _make_model(options: argparse.Namespace) -> "PromptedSetModel":
    from setaug.prompting import PromptedSetModel

    with checking_options():
        return PromptedSetModel(
            options.model,
            augmenter=make_augmenter(options),
            shots=options.shots,
            shot_choice=options.shot_choice,
            kind=options.endpoint,
            instruction=options.instruction,
            max_listed=options.max_listed,
            vocabulary=named_vocabulary(options.vocabulary),
            unknown=options.unknown,
            samples=options.samples,
            temperature=options.temperature,
            seed=options.seed,
            max_tokens=options.max_tokens,
            constrained=options.constrain,
            skip_refused=options.skip_refused,
            endpoint=make_endpoint(options),
            **given_settings(options, Decoding, only=("choose", "threshold", "k")),
        ).check()


def _answers(options: argparse.Namespace) -> str:
    """Return the path of the answer cache: next to the output, or in the working folder if that is not a file."""
    from setaug.storage import check_outputs, descriptor_of, is_address, local_path

    output = local_path(options.output)
    is_open = descriptor_of(output) is not None or is_address(output)
    is_file = not is_open and (not os.path.exists(output) or os.path.isfile(output))
    answers = local_path(options.answers or (f"{output}.answers.jsonl" if is_file else "setaug-answers.jsonl"))
    if descriptor_of(answers) is not None or is_address(answers):
        raise UsageError(f"--answers must be a separate local file, got {answers}.")
    check_outputs([options.output, answers], [*options.input, options.train])
    return answers


def _read(options: argparse.Namespace, paths: list[str], skipped: Any, *, are_labelled: bool) -> "list[Example]":
    from setaug.engines.sources import find_files

    files = find_files(paths, options.input_kind)
    read = (read_input(options, file.path, skipped=skipped, are_labelled=are_labelled) for file in files)
    examples = list(chain.from_iterable(read))
    if not examples:
        raise UsageError(f"{', '.join(paths)} contains no examples.")
    return examples


def _show(model: "PromptedSetModel", texts: "list[Example]") -> None:
    """Print the request for the first text, and the amount of work."""
    import json

    body = model.request(texts[0].text)
    is_chat = model.kind == "chat"
    shown = json.dumps(body, indent=2, ensure_ascii=False) if is_chat else body["prompt"]
    printed = "\n".join(map(printable, shown.split("\n")))
    sys.stdout.buffer.write(printed.encode(errors="replace") + b"\n")  # whatever the terminal's encoding
    sys.stdout.flush()
    n_answers = max(model.samples, 1)
    n_chars = sum(len(message["content"]) for message in body["messages"]) if is_chat else len(body["prompt"])
    each = "" if n_answers == 1 else f", {n_answers} answers per text"
    tell(
        f"{counted(len(texts), 'text')}{each}; {counted(len(model.shots_), 'example')} in each prompt; "
        f"{n_chars:,} characters in this one"
    )


def _summary(report: "PromptReport", model: "PromptedSetModel") -> list[str]:
    before = report.n_answers - report.n_new
    had = f", {before:,} of them cached" if before > 0 else ""
    tokens = f"{report.prompt_tokens:,} prompt tokens and {report.completion_tokens:,} completion tokens"
    usage = tokens if report.prompt_tokens or not report.n_new else "the server reported no token counts"
    lines = [f"{counted(report.n_texts, 'text')}, {counted(report.n_answers, 'answer')}{had}; {usage}"]
    if model.labels_ is not None:
        what = f"{report.n_unknown:,} kept" if model.unknown == "keep" else f"{report.n_dropped:,} dropped"
        n_strange = report.n_unknown + report.n_dropped
        lines.append(
            f"{counted(report.n_labels, 'label')}: {report.n_mapped:,} known ones matched despite case or spacing; "
            f"{n_strange:,} unknown ({what}); {report.n_repeated:,} repeated"
        )
    if report.n_cut_off:
        lines.append(f"truncated at --max-tokens: {counted(report.n_cut_off, 'answer')}")
    if report.n_refused:
        lines.append(
            f"refused, predicted as empty: {counted(report.n_refused, 'text')}; the first: {report.first_refusal}"
        )
    return lines
