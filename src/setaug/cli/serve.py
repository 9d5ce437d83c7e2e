"""Serve a web page to explore label sets and try a trained model; the same model answers over HTTP.

On the page: upload a file (or use the built-in sample), see the label graph, move the two thresholds and watch edges,
allowed orders and "will order help?" change, see the orders of any set, download the training pairs. With a model:
type a text and see its set with a probability for each label. The JSON API is described at /openapi.json.

The server listens on localhost only. Any other --host requires a key, read from the environment.
"""

import argparse
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from setaug.cli.shared.options import UsageError, add_fields, columns_of

if TYPE_CHECKING:
    from setaug.web.data.datasets import Dataset, Datasets

EXAMPLES = """\
examples:
  setaug serve
  setaug serve --data train.jsonl
  setaug serve run/ --data train.csv --delimiter ","
  SETAUG_API_KEY=... setaug serve run/ --host 0.0.0.0 --port 80
  curl -s localhost:8765/api/predict -H 'Content-Type: application/json' -d '{"texts": ["We won!"]}'
"""

INTERRUPTED = "the server has stopped"
_LOCAL = ("127.0.0.1", "localhost", "::1")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "folder", nargs="?", metavar="MODEL", help="a folder written by setaug train, or org/name on the Hub"
    )
    parser.add_argument("--data", metavar="FILE", help="examples to show first, in any format that setaug reads")
    add_fields(parser.add_argument_group("reading"))
    group = parser.add_argument_group("server")
    group.add_argument("--host", default="127.0.0.1", help="address to listen on [127.0.0.1: this machine only]")
    group.add_argument("--port", type=int, default=8765, help="port to listen on; 0 for any free port [8765]")
    group.add_argument(
        "--key-variable",
        default="SETAUG_API_KEY",
        metavar="NAME",
        help="environment variable of the key that requests must send [SETAUG_API_KEY]",
    )
    group.add_argument("--max-upload", type=int, default=50, metavar="MB", help="maximum size of an upload [50]")
    group.add_argument("--max-waiting", type=int, default=256, metavar="N", help="maximum number of queued texts [256]")
    group.add_argument("--timeout", type=float, default=60.0, metavar="S", help="seconds to wait for the model [60]")
    group.add_argument(
        "--max-per-address",
        type=int,
        default=64,
        metavar="N",
        help="maximum connections per client address; 0 turns off all limits per address [64]",
    )
    group.add_argument(
        "--proxy",
        action="append",
        default=[],
        metavar="ADDRESS",
        help="address of a reverse proxy: its X-Forwarded-For header is trusted, its own connections are not limited",
    )
    group.add_argument(
        "--log-format",
        choices=("text", "json"),
        default="text",
        help="format of the request log, one line per request [text]",
    )
    group.add_argument("--open", action="store_true", help="open the page in a browser")


def run(options: argparse.Namespace) -> None:
    """Serve until interrupted."""
    if options.folder is not None:  # before the server and torch are imported
        from setaug.models.hub import find_model
        from setaug.models.model_folder import read_card

        read_card(find_model(options.folder))
    from setaug.web import Limits, make_app, run_app
    from setaug.web.data.datasets import Datasets
    from setaug.web.folder import own_folder
    from setaug.web.monitoring import log_to_stderr

    key = os.environ.get(options.key_variable) or None
    if options.host not in _LOCAL and key is None:
        raise UsageError(f"--host {options.host!r} needs a key: set the environment variable {options.key_variable}.")
    if options.max_upload < 1 or options.max_waiting < 1 or options.timeout <= 0:
        raise UsageError("--max-upload, --max-waiting and --timeout must be above 0.")
    if options.max_per_address < 0:
        raise UsageError(f"--max-per-address must not be negative, got {options.max_per_address}.")
    limits = Limits(
        upload_bytes=options.max_upload << 20,
        held_bytes=max(4 * options.max_upload << 20, Limits.held_bytes),
        waiting_texts=options.max_waiting,
        predict_seconds=options.timeout,
        per_address=options.max_per_address,
    )
    model = None
    if options.folder is not None:
        from setaug.models import load_model

        model = load_model(options.folder)
    with own_folder() as folder, closing(Datasets(folder, limits)) as datasets:
        data = None if options.data is None else _open(options, datasets)
        name = "" if options.folder is None else Path(options.folder).resolve().name
        app = make_app(
            model=model,
            model_name=name,
            data=data,
            datasets=datasets,
            limits=limits,
            key=key,
            proxies=options.proxy,
        )
        with _listening(options.host, options.port) as place:
            _announce(options, place.getsockname()[1])
            log_to_stderr(options.log_format)
            run_app(app, place, proxies=options.proxy)


def _open(options: argparse.Namespace, datasets: "Datasets") -> "Dataset":
    from setaug.storage import kind_of

    kind = options.input_kind or kind_of(options.data)
    return datasets.open(options.data, kind=kind, columns=columns_of(options))


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    """Listen, or raise a `UsageError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With an explicit protocol: otherwise asyncio does not set TCP_NODELAY, and each response waits 40 ms.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as found:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((host, port))
            found.listen(512)
        except (OSError, OverflowError) as error:
            raise UsageError(f"cannot listen on {host}, port {port}: {str(error).rstrip('.')}.") from None
        yield found


def _announce(options: argparse.Namespace, port: int) -> None:
    shown = f"[{options.host}]" if ":" in options.host else options.host
    address = f"http://{shown}:{port}/"
    sys.stderr.write(f"{address}  (Ctrl-C to stop)\n")
    sys.stderr.flush()
    if options.open:
        import webbrowser

        webbrowser.open(address)
