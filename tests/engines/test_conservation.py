"""No row is lost and no value changed: generated files of all kinds, with all options, read back by other libraries.

``SETAUG_CONSERVATION=2000`` runs so many; see also ``python -m tests.engines.conservation``.
"""

import os

import pytest

from tests.engines import conservation

N_CASES = int(os.environ.get("SETAUG_CONSERVATION", "300"))


@pytest.mark.parametrize("part", range(5))
def test_rows_in_are_pairs_out_and_bad_rows(part: int) -> None:
    counts = conservation.run_many(range(part, N_CASES, 5))
    assert counts["rows"] > 0


@pytest.mark.filterwarnings("ignore::DeprecationWarning:ray")  # it warns of its own doings
def test_rows_in_are_pairs_out_and_bad_rows_on_ray() -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'setaug[ray]'")
    with conservation.ray():
        assert conservation.run_many(range(min(max(N_CASES // 50, 6), 40)), is_ray=True)["rows"] > 0
