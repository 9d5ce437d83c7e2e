"""Models on the Hugging Face Hub: found by name, downloaded into its cache, and pushed. Nothing here needs torch."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from setaug.errors import MissingExtraError, ModelError
from setaug.models.model_card import HUB_NAME, MODEL_CARD, PLACE, is_hub_name
from setaug.models.model_folder import CARD, COMPANION, HEAD, MEMBER, STATISTICS, first_line, read_card

_FILES = (
    *("README.md", CARD, STATISTICS, "*config.json", "*.safetensors", "*.safetensors.index.json", "tokenizer*"),
    *("special_tokens*", "added_tokens.json", "vocab*", "merges.txt", "*.model", "chat_template*", COMPANION, HEAD),
)
"""The files of a model; other files are not uploaded."""
_PATTERNS = (*_FILES, *(f"{MEMBER}*/{name}" for name in _FILES))
_OTHER_FOLDERS = (*(f"{MEMBER[:at]}[!{MEMBER[at]}]*/*" for at in range(len(MEMBER))), "*/*/*")
"""Patterns of what is in a folder that is not that of a member; there is no pattern for "all folders but"."""
_LOG_IN = "log in (hf auth login) or set HF_TOKEN"


def find_model(name: str | Path, revision: str | None = None) -> Path:
    """Return the folder of a model: the given folder, or a folder in the cache for a name on the Hub.

    Parameters
    ----------
    revision
        A branch, tag or commit of the Hub's repository; also ``org/name@revision``.

    """
    found = HUB_NAME.fullmatch(str(name))
    if found is None or Path(name).exists():
        if revision is not None:
            raise ValueError(f"a revision requires a model on the Hub; {name} is a folder.")
        return Path(name)
    hub, revision = _hub(), revision or found["revision"]
    repository = found["name"]
    with _asking(f"cannot load {name}: there is no such folder, and the Hub", revision), _quiet():
        folder = hub.snapshot_download(
            repository, revision=revision, allow_patterns=list(_PATTERNS), ignore_patterns=list(_OTHER_FOLDERS)
        )
    return Path(folder)


def push_model(
    folder: str | Path,
    name: str,
    *,
    private: bool | None = None,
    revision: str | None = None,
    message: str = "Upload a model of setaug",
) -> str:
    """Push a model folder to the Hub in one commit, and return its URL.

    Parameters
    ----------
    name
        ``org/name``; the repository is created if there is none.
    private
        Whether a new repository is private; by default as the organization has it.
    revision
        An existing branch; by default the main one.

    """
    if not is_hub_name(name) or "@" in name:
        raise ModelError(f"a name on the Hub must be org/name, got {name!r}.")
    root = Path(folder)
    read_card(root)
    hub = _hub()
    paths = sorted(path for path in {one for pattern in _PATTERNS for one in root.glob(pattern)} if path.is_file())
    with _asking(f"cannot push {folder} to {name}: the Hub", revision), _quiet():
        api = hub.HfApi()
        api.create_repo(name, private=private, exist_ok=True)
        api.create_commit(
            name,
            [
                hub.CommitOperationAdd(
                    path.relative_to(root).as_posix(),
                    path.read_bytes().replace(PLACE.encode(), name.encode()) if path.name == MODEL_CARD else str(path),
                )
                for path in paths
            ],
            commit_message=message,
            revision=revision,
        )
    return f"{api.endpoint}/{name}"


def _hub() -> Any:
    try:
        import huggingface_hub
    except ImportError:
        raise MissingExtraError("Models on the Hugging Face Hub", "train") from None
    return huggingface_hub


@contextmanager
def _quiet() -> Iterator[None]:
    """Disable the client's progress bars unless standard error is a terminal."""
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    if sys.stderr.isatty() or are_progress_bars_disabled():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()


@contextmanager
def _asking(what: str, revision: str | None) -> Iterator[None]:
    """Convert any error of the Hub's client into a one-line `ModelError`."""
    try:
        yield
    except ModelError:
        raise
    except Exception as error:  # of the client, of its HTTP library, of the files on disk
        raise ModelError(f"{what} {_problem(error, revision)}.") from None


def _problem(error: BaseException, revision: str | None) -> str:
    from huggingface_hub import errors

    match error:
        case errors.GatedRepoError():
            return f"restricts access; ask for it on the model's page, and {_LOG_IN}"
        case errors.RepositoryNotFoundError():
            return f"has no such repository; if it is private, {_LOG_IN}"
        case errors.RevisionNotFoundError():
            return f"has no revision {revision!r}"
        case errors.OfflineModeIsEnabled():
            return "is disabled (HF_HUB_OFFLINE is set)"
        case errors.LocalEntryNotFoundError() if error.__cause__ is not None:
            return _problem(error.__cause__, revision) + ", and the model is not in the cache"
        case errors.HfHubHTTPError() if error.response.status_code in (401, 403):
            return f"refuses access ({error.response.status_code}); {_LOG_IN} with the right to do this"
        case errors.HfHubHTTPError():
            return f"answered {error.response.status_code}"
        case RuntimeError() if error.__cause__ is not None:  # of the upload of a large file
            return _problem(error.__cause__, revision)
        case ValueError():
            return f"rejected it ({first_line(error)})"
    return f"cannot be reached ({first_line(error)})"
