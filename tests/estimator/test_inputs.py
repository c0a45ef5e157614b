"""What a call takes and gives back: narrow floats at a bound, tables, kinds of numbers."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import trueup as tu

WIDTHS = ["f4", "f8", "g"]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("low", [0.1, 0.3, 0.7, 0.05, 1 / 3])
def test_a_value_at_a_bound_is_at_the_bound_in_its_own_precision(width, low):
    """Clamped releases hold the bound as their precision has it: f(L) − b·f′(L) belongs to it."""
    below = tu.unbiased("1/q", tu.Laplace(2), (low, None))
    expected = 1 / low + 2 / low**2
    x = np.array([low, low, 3], width)
    for found in (below(x)[0], below(x[0]), below(x.reshape(1, 3))[0, 0], below(x[::-1])[2]):
        assert found == pytest.approx(expected, rel=1e-6)
    assert below(x).dtype == x.dtype
    assert below.variance(x)[0] == pytest.approx(4 / low**4, rel=1e-6)
    above = tu.unbiased("q**3", tu.Laplace(2), (None, low))
    assert above(x[0]) == pytest.approx(low**3 + 6 * low**2, rel=1e-6)


def test_a_value_beside_a_bound_is_not_at_it():
    est = tu.unbiased("1/q", tu.Laplace(2), (0.1, None))
    beside = np.nextafter(np.float32(0.1), np.float32(1))
    assert est(np.array([beside]))[0] == pytest.approx(est(float(beside)), rel=1e-6)
    assert est(np.nextafter(0.1, 1)) < 0  # a double above the bound


def test_half_precision_is_refused():
    est = tu.unbiased("1/q", tu.Laplace(2), (0.1, None))
    with pytest.raises(tu.TrueupError, match=r"half precision.*\nHint: convert"):
        est(np.array([0.1], "f2"))


@pytest.mark.parametrize("compiled", ["0", "1"])
def test_compiled_kernels_see_narrow_bounds(compiled, monkeypatch):
    if compiled == "1":
        pytest.importorskip("numba")
    monkeypatch.setenv("TRUEUP_NUMBA", compiled)
    est = tu.unbiased("1/q", tu.Laplace(2), (0.1, None))
    assert est(np.full(5000, 0.1, "f4")) == pytest.approx(210, rel=1e-6)


MASKED = np.ma.array([3.0, 4.0, 5.0], mask=[False, True, False])


def test_masked_arrays_are_refused():
    est = tu.unbiased("1/q", tu.Laplace(2), (1, None))
    plain = tu.noisy([3.0, 4.0, 5.0], tu.Laplace(2))
    calls = [est, est.variance, est.stderr, est.interval, est.expectation, est.bias, est.sd]
    calls += [tu.plugin_bias("q**2", tu.Laplace(2)), lambda x: tu.noisy(x, tu.Laplace(2))]
    calls += [lambda x: plain * x, lambda x: est(q=x)]
    for call in calls:
        with pytest.raises(tu.TrueupError, match=r"masked array, of which 1.*\nHint: fill or"):
            call(MASKED)
    with pytest.raises(tu.TrueupError, match=r"\nHint: .*fill or compress masked arrays"):
        MASKED * plain


def test_a_table_is_refused_with_the_column_to_name(frame):
    """County codes were estimated too, in silence."""
    table = frame({"county": [1001, 1003], "n": [103.0, 7.0]})
    est = tu.unbiased("1/n", tu.Laplace(2), (1, None))
    for call in (est, est.sd, est.interval, lambda t: est(n=t)):
        with pytest.raises(tu.TrueupError, match=r"(?s)columns county, n\nHint: .*frame\['n'\]"):
            call(table)
    with pytest.raises(tu.TrueupError, match=r"frame\['county'\]"):
        tu.unbiased("1/q", tu.Laplace(2), (1, None))(table)


def test_a_column_of_text_is_refused_by_its_name(frame):
    """Text that looks like numbers was read as numbers."""
    table = frame({"emp": ["103", "7"]})
    est = tu.unbiased("1/n", tu.Laplace(2), (1, None))
    with pytest.raises(tu.TrueupError, match=r"the column 'emp' given for n holds String"):
        est(table["emp"])
    with pytest.raises(tu.TrueupError, match="must be a number"):
        est(np.array(["103", "7"], object))


@pytest.fixture(params=["pandas", "polars"])
def frame(request):
    return pytest.importorskip(request.param).DataFrame


def test_kinds_of_numbers():
    est = tu.unbiased("1/q", tu.Laplace(2), (1, None))
    for four in (4, 4.0, Decimal(4), Fraction(4), np.int8(4), np.uint64(4), np.float32(4)):
        assert est(four) == 0.125
        assert type(est(four)) is float
    for fours in ([4], [Decimal(4)], np.array([4], object), np.array([4], "u1")):
        assert est(fours).tolist() == [0.125]
    for wrong in (True, np.True_, np.array([True]), "4", None, 4j):
        with pytest.raises(tu.TrueupError, match="must be a number"):
            est(wrong)
    assert est(np.array([2**63, 2**64 - 1], "u8")) == pytest.approx([2.0**-63, 2.0**-64])


def test_missing_numbers_of_pandas_are_nan():
    pd = pytest.importorskip("pandas")
    est = tu.unbiased("1/q", tu.Laplace(2), (1, None))
    for kind in ("Int64", "Float32"):
        found = est(pd.array([4, None], dtype=kind))
        assert found[0] == 0.125
        assert np.isnan(found[1])


def test_series_whose_rows_have_other_labels_are_refused():
    pd = pytest.importorskip("pandas")
    est = tu.unbiased("s*n", {"s": tu.Laplace(1), "n": tu.Laplace(1)})
    s, n = pd.Series([1.0, 2.0], index=[0, 1]), pd.Series([30.0, 40.0], index=[1, 0])
    with pytest.raises(tu.TrueupError, match="different indexes"):
        est(s=s, n=n)
    with pytest.raises(tu.TrueupError, match="different indexes"):
        est.variance(s=s, n=n)
    assert est(s=s, n=n.sort_index()) == pytest.approx([40.0, 60.0])
    assert est(s=s, n=n.to_numpy()) == pytest.approx([30.0, 80.0])
    assert est(s=s, n=3.0) == pytest.approx([3.0, 6.0])
