"""Calibration: scikit-learn's isotonic regression, kept as points."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from setaug.decoding.samples import Calibration

shares = st.sampled_from([step / 8 for step in range(9)])
found = st.lists(st.tuples(st.dictionaries(st.sampled_from("abcd"), shares), st.frozensets(st.sampled_from("abcde"))))


@given(found.filter(lambda rows: any(one for one, _ in rows)))
def test_it_is_isotonic_regression_and_never_falls(rows):
    drawn, gold = zip(*rows, strict=True)
    fitted = Calibration.fit(drawn, gold)
    x = [share for one in drawn for share in one.values()]
    y = [float(label in labels) for one, labels in rows for label in one]
    wanted = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(x, y)
    grid = np.linspace(0, 1, 33)
    given_shares = {str(at): share for at, share in enumerate(grid.tolist())}
    values = list(fitted(given_shares).values())
    np.testing.assert_allclose(values, wanted.predict(grid), atol=1e-12)
    assert all(np.diff(values) >= 0)
    assert 0 <= min(values) <= max(values) <= 1
    assert Calibration.from_dict(json.loads(json.dumps(fitted.to_dict()))) == fitted


def test_without_labels_there_is_nothing_to_learn_or_to_map():
    with pytest.raises(ValueError, match="cannot calibrate: no dev example"):
        Calibration.fit([{}], [{"a"}])
    assert Calibration((0.5,), (0.25,))({}) == {}
    assert Calibration((0.5,), (0.25,))({"a": 0.9}) == {"a": 0.25}
