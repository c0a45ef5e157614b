"""Plan a private table: measures and budget in; standard errors by group size, the command out."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from trueup.errors import TrueupError
from trueup.explorer.refused import Refusal
from trueup.explorer.views.form import beside, filled, lines_of, number, plain
from trueup.formula.grammar import assignment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trueup.exact import Exact
    from trueup.microdata.design import Design

_MOST = 12  # measures: each one costs budget
_BY_TOTAL = "; its errors are at totals so large, not at so many records"
_LARGEST = 10**9
_CURVE = (1, 2, 3, 5, 7, 10, 20, 30, 50, 70)
"""Group sizes at which the errors are drawn, and from there in steps of a power of ten."""


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    r"""Return the errors to expect by group size, the weights proposed, and what to run.

    Examples
    --------
    >>> shown = answer({"measures": "n = count\nwage = mean(wage, 0, 100)", "epsilon": "2"})
    >>> [(m["name"], m["epsilon"], round(m["errors"][1], 2)) for m in shown["measures"]]
    [('n', None, 0.85), ('wage', 2.0, 0.65)]
    >>> shown["weights"]
    'wage = 1'
    """
    from trueup.microdata.expected import SIZES, error, expected, proposed
    from trueup.microdata.measures import PerRecord
    from trueup.microdata.privacy_notice import Privacy
    from trueup.microdata.report_text import method

    design = _design(request)
    typical = filled(request, "size")
    size = 100 if typical is None else _whole(typical, "size")
    errors = expected(design, SIZES)
    counts = [n * 10**power for power in (0, 2) for n in _CURVE] + [10_000]
    measures = [
        {
            "name": name,
            "method": method(design, name) + _BY_TOTAL * isinstance(measure, PerRecord),
            "epsilon": float(design.budget[name]) if name in design.budget else None,
            "errors": plain(errors[name]),
            "curve": plain([error(design, name, n) for n in counts]),
        }
        for name, measure in design.measures.items()
    ]
    better = proposed(design, size)
    return {
        "measures": measures,
        "sizes": list(SIZES),
        "counts": counts,
        "size": size,
        "weights": ", ".join(f"{n} = {float(w):g}" for n, w in better.weights.items()),
        "proposed": {n: error(better, n, size) for n in better.measures},
        "given": {n: error(design, n, size) for n in design.measures},
        "privacy": str(Privacy.of(design, simulated=False)),
        "command": _command(request, design),
        "toml": _toml(request, design),
    }


def _design(request: Mapping[str, Any]) -> Design:
    """Return the design, every field checked by itself."""
    from trueup.microdata.design import Design
    from trueup.microdata.measures import read_measure, read_measures

    lines = lines_of(request, "measures", "wage = mean(wage, 0, 120000)")
    if len(lines) > _MOST:
        problem = f"there are {len(lines)} measures, the page takes {_MOST}"
        raise Refusal(problem, "each one costs budget; plan several tables", field="measures")
    measures: dict[str, Any] = {}
    with beside("measures"):
        for line in lines:
            name, what = assignment(line)
            if not name or name in measures:
                problem = f"two measures have the name {name!r}" if name else f"{line!r}: no name"
                raise TrueupError(problem, "write e.g. wage = mean(wage, 0, 120000)")
            measures[name] = read_measure(what)
        read_measures(measures)
    epsilon = number(request.get("epsilon", "1"), "epsilon")
    with beside("epsilon"):
        if epsilon <= 0:
            raise TrueupError(f"epsilon must be positive, got {epsilon}", "e.g. 1")
    weights = _weights(request)
    with beside("weights"):
        Design.read(measures, 1, weights=weights)
    rows = filled(request, "at_most")
    unit = _text(request, "unit") or None
    with beside("at_most" if unit else "unit"):
        by = [name.strip() for name in _text(request, "by").split(",") if name.strip()]
        return Design.read(measures, epsilon, by, weights, unit, rows)


def _whole(value: Exact, field: str) -> int:
    if value != int(value) or not 0 < value <= _LARGEST:
        problem = f"must be a whole number up to {_LARGEST:,}, got {value}"
        raise Refusal(problem, "e.g. 100", field=field)
    return int(value)


def _weights(request: Mapping[str, Any]) -> dict[str, Exact]:
    """Return the weights in a line such as ``n = 1.3, wage = 1``."""
    found: dict[str, Exact] = {}
    for part in filter(str.strip, _text(request, "weights").split(",")):
        name, value = assignment(part)
        if not name:
            problem = f"{part.strip()!r} gives no measure a weight"
            raise Refusal(problem, "write e.g. wage = 2", field="weights")
        found[name] = number(value, "weights")
    return found


def _text(request: Mapping[str, Any], field: str, usual: str = "") -> str:
    text = request.get(field)
    return (text.strip() if isinstance(text, str) else "") or usual


def _command(request: Mapping[str, Any], design: Design) -> str:
    """Return the command that releases the table."""
    from trueup.microdata.privacy_notice import words

    parts = ["trueup release PEOPLE.parquet TABLE.csv"]
    parts += [shlex.quote(f"{name} = {words(m)}") for name, m in design.measures.items()]
    if design.by:
        parts.append(f"--by {shlex.quote(','.join(design.by))}")
        parts.append(f"--keys {shlex.quote(_text(request, 'keys', 'groups.csv'))}")
    parts.append(f"--epsilon {design.epsilon}")
    if design.unit is not None:
        parts.append(f"--unit {shlex.quote(design.unit)} --at-most {design.at_most}")
    parts += [f"--weight {n}={w}" for n, w in _unusual(design).items()]
    return " \\\n  ".join(parts)


def _toml(request: Mapping[str, Any], design: Design) -> str:
    """Return the plan for ``trueup release --spec``."""
    from trueup.microdata.privacy_notice import key, text, words

    lines = [f"epsilon = {_toml_number(design.epsilon)}"]
    if design.by:
        lines.append(f"by = [{', '.join(map(text, design.by))}]")
        lines.append(f"keys = {text(_text(request, 'keys', 'groups.csv'))}")
    if design.unit is not None:
        lines += [f"unit = {text(design.unit)}", f"at_most = {design.at_most}"]
    lines += ["", "[measures]"]
    lines += [f"{key(n)} = {text(words(m))}" for n, m in design.measures.items()]
    if _unusual(design):
        lines += ["", "[weights]"]
        lines += [f"{key(n)} = {_toml_number(w)}" for n, w in _unusual(design).items()]
    return "\n".join([*lines, ""])


def _unusual(design: Design) -> dict[str, Exact]:
    """Return the weights that must be told: also that of a count that could be free."""
    return {n: w for n, w in design.weights.items() if w != 1 or n == design.count}


def _toml_number(value: Exact) -> str:
    return str(value) if isinstance(value, int) else repr(float(value))
