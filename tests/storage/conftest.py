"""Here files are synced to the disk."""

import pytest

from tests.power_loss import FSYNC


@pytest.fixture(autouse=True)
def synced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", FSYNC)
