"""Push a trained model to the Hugging Face Hub.

The repository is created if it does not exist. Only the files of the model are pushed: weights, tokenizer, settings,
label statistics and the model card (README.md), which you may edit before. Log in first: hf auth login, or HF_TOKEN.
"""

import argparse

from setaug.terminal import tell

EXAMPLES = """\
examples:
  setaug push run/ org/topics
  setaug push run/ org/topics --private
  setaug predict org/topics test.jsonl -o predictions.jsonl
  setaug predict org/topics@v1 test.jsonl -o predictions.jsonl       a branch, tag or commit
"""

INTERRUPTED = "run the same command again to push the missing files"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("folder", metavar="MODEL", help="a folder written by setaug train")
    parser.add_argument("name", metavar="NAME", help="name on the Hub: org/name")
    parser.add_argument(
        "--private",
        action=argparse.BooleanOptionalAction,
        help="make a new repository private [the organization's default]",
    )
    parser.add_argument("--revision", metavar="BRANCH", help="an existing branch to push to [main]")
    parser.add_argument("--message", default="Upload a model of setaug", metavar="TEXT", help="commit message")


def run(options: argparse.Namespace) -> None:
    """Push a model."""
    from setaug.models.hub import push_model

    address = push_model(
        options.folder, options.name, private=options.private, revision=options.revision, message=options.message
    )
    tell(f"pushed {options.folder} to {address}")
