"""Progress: lines where there is no terminal, one line in a notebook, bars on a terminal."""

import io
import sys

import pytest

from setaug import progress as module
from setaug.progress import chosen_progress, progress_bar


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "monotonic", clock)
    monkeypatch.setattr(module, "LINE_EVERY", 30.0)
    return clock


def test_off_a_terminal_a_line_is_written_every_half_minute(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar() as show:
        for step in range(1, 101):
            clock.now += 1
            show(f"training: loss {1 / step:.2f}", step, 400)
    assert capsys.readouterr().err.splitlines() == [
        "training: loss 0.03, 30 of 400, 6:10 left",
        "training: loss 0.02, 60 of 400, 5:40 left",
        "training: loss 0.01, 90 of 400, 5:10 left",
    ]


def test_a_stage_that_begins_anew_is_timed_anew(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar() as show:
        show("dev data", 1, 10)
        clock.now += 1
        show("dev data", 10, 10)
        clock.now += 20
        show("dev data", 1, 10)
        clock.now += 20
        show("dev data", 3, 10)
        clock.now += 31
        show("reading\x1b[2J", 7000, None)
    assert capsys.readouterr().err.splitlines() == ["dev data, 3 of 10, 1:10 left", r"reading\u001b[2J, 7,000"]


class OutStream(io.StringIO):
    """A stream like that of a notebook's kernel, which is told by its module."""

    __module__ = "ipykernel.iostream"


def test_a_notebook_has_one_line_that_is_rewritten(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = OutStream()
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_bar() as show:
        for step in (1, 2, 3):
            clock.now += 1
            show("training: loss 0.5" if step < 3 else "training", step, 3)
    assert stream.getvalue() == (
        "\rtraining: loss 0.5, 1 of 3\rtraining: loss 0.5, 2 of 3, 0:01 left\rtraining, 3 of 3, 0:00 left          \n"
    )


def test_progress_can_be_turned_off_and_given(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[object] = []
    with chosen_progress(False, "") as none, chosen_progress(None, "") as nothing:
        assert none is nothing is None
    with chosen_progress(lambda *told: seen.append(told), "") as given:
        assert given is not None
        given("a", 1, 2)
    assert seen == [("a", 1, 2)]
    assert capsys.readouterr().err == ""
