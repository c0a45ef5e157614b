"""Upload, debias, download, remove: the table comes back right and nothing stays."""

import asyncio
import csv
import io
from pathlib import Path

import pytest

from explorer import cases
from explorer.cases import Server, wait_for
from extras import needs
from trueup import DiscreteLaplace, Laplace, unbiased
from trueup.explorer import allowances
from trueup.explorer.uploads import Uploads

needs("duckdb")
pyarrow = needs("pyarrow")
parquet = needs("pyarrow.parquet")

CELLS = 'town,s,emp\nAy,51.7,103\nBe,20.0,50\n"C,e",3.0,7\nDe,,4\n'
MEAN = {"formulas": "mean = s/n", "statistics": cases.MEAN["statistics"]}
FORM = {**MEAN, "columns": {"n": "emp"}}


def upload(server, body, name="cells.csv"):
    """Send a file."""
    return server.ask("POST", f"/api/files?name={name}", body)


def debiased(server, key, form):
    """Start, wait, and return the state at the end."""
    started = server.post(f"/api/files/{key}", form)
    assert started.status == 202, started.text
    path = f"/api/files/{key}"
    return wait_for(lambda: (s := server.get(path).json)["state"] != "running" and s, 60)


def expected(s, n):
    laws = {"s": Laplace(2), "n": DiscreteLaplace(2)}
    mean = unbiased("s/n", laws, domain={"n": (1, None)})
    return mean(s=s, n=n), mean.stderr(s=s, n=n)


def test_csv_in_csv_out(server):
    sent = upload(server, CELLS)
    assert sent.status == 201
    assert sent.json["table"]["columns"] == ["town", "s", "emp"]
    assert sent.json["table"]["rows"][2] == ["C,e", "3.0", "7"]
    key = sent.json["id"]
    state = debiased(server, key, FORM)
    assert state["state"] == "done", state
    assert state["progress"] == 1
    assert state["result"]["columns"] == ["town", "s", "emp", "mean", "mean_stderr"]
    result = server.get(f"/api/files/{key}/result")
    assert 'filename="debiased-cells.csv"' in result.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(result.text)))
    assert [row["town"] for row in rows] == ["Ay", "Be", "C,e", "De"]
    for row in rows[:3]:
        value, stderr = expected(float(row["s"]), int(row["emp"]))
        assert float(row["mean"]) == pytest.approx(value, rel=1e-12)
        assert float(row["mean_stderr"]) == pytest.approx(stderr, rel=1e-9)
    assert rows[3]["mean"] == ""
    assert server.ask("DELETE", f"/api/files/{key}").status == 204
    assert server.get(f"/api/files/{key}/result").status == 404


def test_parquet_in_parquet_out(server, tmp_path):
    table = pyarrow.table({"s": [51.7, 20.0], "n": [103, 50], "b": [1.0, 4.0]})
    parquet.write_table(table, tmp_path / "cells.parquet")
    sent = upload(server, (tmp_path / "cells.parquet").read_bytes(), "cells.parquet").json
    assert sent["table"]["count"] == 2
    form = {**MEAN, "scales": {"s": "b"}}
    assert debiased(server, sent["id"], form)["state"] == "done"
    result = server.get(f"/api/files/{sent['id']}/result").body
    back = parquet.read_table(io.BytesIO(result)).to_pydict()
    assert back["mean"] == pytest.approx([expected(51.7, 103)[0], expected(20.0, 50)[0]])
    laws = {"s": Laplace(4), "n": DiscreteLaplace(2)}
    wider = unbiased("s/n", laws, domain={"n": (1, None)}).stderr(s=20.0, n=50)
    assert back["mean_stderr"][1] == pytest.approx(wider)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"columns": {"n": "no such"}}, "columns.n"),
        ({"columns": {}}, "columns.n"),
        ({"scales": {"s": "no such"}}, "scales.s"),
        ({"formulas": "emp = s/n"}, "formulas"),
        ({"formulas": ""}, "formulas"),
        ({"formulas": "`a``b` = s/n"}, "formulas"),
        ({"formulas": ["x"]}, "formulas"),
        ({"formulas": "mean = abs(q)"}, "formulas"),
        ({"formulas": "mean = s/n\nother = s/"}, "formulas"),
        ({"formulas": "mean = s/n\nmean = s"}, "formulas"),
        ({"statistics": {"n": {"scale": "-1"}}}, "n.scale"),
        ({"sums": "product"}, "sums"),
        ({"sums": "ratio", "interval": "95"}, "interval"),
        ({"decimal": ";"}, "decimal"),
        ({"known": "t <= n"}, "known"),
    ],
)
def test_a_choice_that_cannot_be_is_refused_beside_its_field(server, change, field):
    key = upload(server, CELLS).json["id"]
    answer = server.post(f"/api/files/{key}", {**FORM, **change})
    assert answer.status == 422
    assert answer.json["error"]["field"] == field


@pytest.mark.parametrize(
    ("name", "body", "status"),
    [
        ("cells.csv", b"", 422),
        ("cells.csv", b"\xff\xfe\x00bad", 422),
        ("cells.csv", b"\n\n", 422),
        ("cells.csv", b"a," + b"x" * 2**20, 413),
        ("cells.parquet", b"PAR1 no PAR1", 422),
        ("cells.parquet", b"\x00" * 4096, 422),
        ("cells.xlsx", b"PK", 415),
        ("cells", b"a,b", 415),
        ("", b"a,b", 415),
        ("../../../tmp/evil.csv", b"a,b\n1,2\n", 201),
    ],
)
def test_uploads_that_are_refused_say_why(server, name, body, status):
    answer = upload(server, body, name)
    assert answer.status == status, answer.text
    if status == 201:
        assert answer.json["name"] == "evil.csv"
        assert not Path("/tmp/evil.csv").exists()  # noqa: S108
    else:
        assert answer.json["error"]["hint"]


def test_a_failure_of_the_command_is_told(server):
    key = upload(server, "s,n\n1,2\n3,words\n").json["id"]
    state = debiased(server, key, MEAN)
    assert state["state"] == "failed"
    assert "words" in state["error"]["message"]
    assert "under “Missing numbers”" in state["error"]["hint"]
    assert "--" not in state["error"]["hint"]


def test_columns_that_differ_in_blanks_are_told_apart(server):
    key = upload(server, "s,emp, emp,`emp`\n51.7,9,103,9\n").json["id"]
    state = debiased(server, key, {**FORM, "columns": {"n": " emp"}})
    assert state["state"] == "done", state
    result = server.get(f"/api/files/{key}/result").text
    (row,) = csv.DictReader(io.StringIO(result))
    assert float(row["mean"]) == pytest.approx(expected(51.7, 103)[0])


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("my cells.csv", "s,n\n1,2\n3,words\n"),
        ("my cells.csv", "s,n,n\n1,2,3\n"),
        ("my cells.csv", "s,n\n1,2\n3,4,5,6\n"),
        ("my cells.csv", "s,n,\n1,2,3\n"),
    ],
    ids=["words", "twice", "fields", "nameless"],
)
def test_errors_speak_of_the_file_by_its_name(server, name, body):
    key = upload(server, body, name.replace(" ", "%20")).json["id"]
    error = debiased(server, key, MEAN)["error"]
    assert "my cells.csv" in error["message"]
    assert not any("trueup-explore" in text or "input.csv" in text for text in error.values())


def test_a_name_that_is_taken_but_for_its_case(server):
    key = upload(server, CELLS + "\n").json["id"]
    answer = server.post(f"/api/files/{key}", {**FORM, "formulas": "EMP = s/n"})
    assert (answer.status, answer.json["error"]["field"]) == (422, "formulas")


async def never():
    """Yield one byte, and then nothing for ever."""
    yield b"s"
    await asyncio.Event().wait()


async def at_once():
    yield CELLS.encode()


def test_slow_uploads_make_room_for_others(monkeypatch):
    monkeypatch.setattr(allowances, "PACE_SECONDS", 0.0)

    async def scenario():
        async with Uploads(2**20) as uploads:
            slow = [
                asyncio.create_task(uploads.receive("a.csv", never()))
                for _ in range(allowances.ARRIVING)
            ]
            while sum(arrival.seen for arrival in uploads._arriving) < allowances.ARRIVING:
                await asyncio.sleep(0)
            names = [(await uploads.receive("b.csv", at_once())).name for _ in range(2)]
            stopped = [(await asyncio.gather(slow[0], return_exceptions=True))[0]]
            for task in slow:
                task.cancel()
            await asyncio.gather(*slow, return_exceptions=True)
            return names, [error.status for error in stopped], list(uploads._arriving)

    assert asyncio.run(scenario()) == (["b.csv", "b.csv"], [408], [])


def test_unknown_ids_are_not_found(server):
    for method in ("GET", "DELETE"):
        assert server.ask(method, "/api/files/none").status == 404
    assert server.post("/api/files/none", FORM).status == 404


def test_nothing_stays_in_the_temporary_folder(tmp_path):
    server = Server(environment={"TMPDIR": str(tmp_path)})
    try:
        ids = [upload(server, CELLS).json["id"] for _ in range(6)]
        (folder,) = tmp_path.glob("trueup-explore-*")
        assert folder.stat().st_mode & 0o077 == 0
        kept = {entry.name for entry in folder.iterdir()}
        assert kept == set(ids[-4:])  # the oldest made room
        too_large = upload(server, b"x" * (2**20 + 1))
        assert too_large.status == 413
        assert {entry.name for entry in folder.iterdir()} == kept
        server.post(f"/api/files/{ids[-1]}", FORM)  # and it is running when the server ends
    finally:
        code, said = server.stop()
    assert code in (0, -15)
    assert said == ""
    assert list(tmp_path.glob("trueup-explore-*")) == []


def test_the_job_is_a_function_that_tells_how_far_it_is(tmp_path, monkeypatch):
    from trueup.explorer.worker import answer
    from trueup.files import progress

    monkeypatch.setattr(progress, "_EVERY", 0.0)  # ask all the time
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("s,n\n" + "51.7,103\n" * 20_000)
    asked = answer("job", {**MEAN, "header": ["s", "n"]})
    paths = {"source": str(source), "target": str(target), "names": {str(source): "my file"}}
    shares = []
    made = answer("debias", {**asked, **paths}, shares.append)
    assert made["columns"] == ["s", "n", "mean", "mean_stderr"]
    assert made["summary"][0] == "20,000 rows"
    assert shares
    assert all(0 < share <= 1 for share in shares)
    again = answer("debias", {**asked, **paths, "target": str(source)}, shares.append)
    assert "my file is the input" in again["error"]["message"]


def test_the_share_done_reaches_the_server():
    """A process that tells 0.25 and 0.5 before its answer."""
    from trueup.explorer.pool import _Worker

    class Pipe:
        def __init__(self):
            self.sent = iter([b"begun", b"share 0.250", b"share 0.500", b"{}"])

        def send_bytes(self, message):
            self.asked = message

        def recv_bytes(self):
            return next(self.sent)

    worker, seen = _Worker.__new__(_Worker), []
    worker.asked, worker._pipe = 0, Pipe()
    assert worker.ask("look", {}, seen.append) == {}
    assert seen == [0.25, 0.5]


def test_a_file_is_debiased_with_the_conditions_and_the_value_for_empty_cells(
    tmp_path, monkeypatch
):
    from trueup.explorer.views import file
    from trueup.explorer.worker import answer

    monkeypatch.setattr(file, "expected_errors", lambda job: {})  # slow here, and not asked for

    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("s,n\n9,8\n0,0\n3,1\n")
    count = {"family": "discrete_laplace", "way": "scale", "scale": "2", "low": "0"}
    joint = {
        "formulas": "r = s/n", "statistics": {"s": count, "n": count},
        "known": "s <= n", "empty": "0.5",
    }  # fmt: skip
    asked = answer("job", {**joint, "header": ["s", "n"]})
    made = answer("debias", {**asked, "source": str(source), "target": str(target), "names": {}})
    noise = {"s": DiscreteLaplace(2), "n": DiscreteLaplace(2)}
    est = unbiased("s/n", noise, "0 <= s <= n", empty=0.5)
    for row, (s, n) in zip(made["rows"], [(9, 8), (0, 0), (3, 1)], strict=True):
        assert float(row[2]) == pytest.approx(est(s=s, n=n), rel=1e-12)


def run(tmp_path, text, **asked):
    """Debias a text without a server; return the rows as they are shown, or the error."""
    from trueup.explorer.worker import answer

    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text(text)
    target.unlink(missing_ok=True)
    asked = {**MEAN, "header": text.split("\n", 1)[0].split(","), **asked}
    job = answer("job", asked)
    if "error" in job:
        return job["error"]
    paths = {"source": str(source), "target": str(target), "names": {str(source): "“cells.csv”"}}
    made = answer("debias", {**job, **paths})
    return made.get("error") or made


TABLE = "state,s,n\nA,51.7,103\nB,20.0,50\nA,3.0,7\n"


def test_several_formulas_at_once(tmp_path):
    made = run(tmp_path, TABLE, formulas="mean = s/n\n\ninverse = 1/n\n")
    assert made["columns"][3:] == ["mean", "mean_stderr", "inverse", "inverse_stderr"]
    inverse = unbiased("1/n", DiscreteLaplace(2), domain=(1, None))
    for row, n in zip(made["rows"], (103, 50, 7), strict=True):
        assert float(row[5]) == pytest.approx(inverse(n), rel=1e-12)
        assert float(row[3]) == pytest.approx(expected(float(row[1]), n)[0], rel=1e-12)


def test_intervals_of_rows(tmp_path):
    made = run(tmp_path, TABLE, interval="0.9")
    assert made["columns"][-2:] == ["mean_low", "mean_high"]
    laws = {"s": Laplace(2), "n": DiscreteLaplace(2)}
    mean = unbiased("s/n", laws, domain={"n": (1, None)})
    for row in made["rows"]:
        ends = mean.interval(s=float(row[1]), n=int(row[2]), level=0.9)
        assert [float(end) for end in row[-2:]] == pytest.approx(list(ends), rel=1e-6)


@pytest.mark.parametrize("sums", ["total", "average", "ratio"])
def test_totals_averages_and_ratios_by_group(tmp_path, sums):
    large = TABLE.replace(",103", ",1030").replace(",50", ",500").replace(",7", ",700")
    made = run(tmp_path, large, sums=sums, by=["state"], interval="0.95")
    groups = {"A": [(51.7, 1030), (3.0, 700)], "B": [(20.0, 500)]}
    assert made["columns"][:3] == ["state", "rows", "mean"]
    assert made["kept"] == 1
    for row in made["rows"]:
        cells = groups[row[0]]
        value = sum(expected(*cell)[0] for cell in cells) / (len(cells) if sums == "average" else 1)
        if sums == "ratio":  # Σs/Σn, up to a small correction; the sum of the ratios is far from it
            value = sum(s for s, _ in cells) / sum(n for _, n in cells)
            low, high = map(float, row[4:6])
            assert low < value < high
            assert (float(row[1]), len(row)) == (len(cells), 6)
        assert float(row[2]) == pytest.approx(value, rel=0.01 if sums == "ratio" else 1e-12)


@pytest.mark.parametrize(
    ("text", "asked", "remedy", "heeded"),
    [
        ("s,n\n1,2\nNA,4\n", {}, "write 'NA' under “Missing numbers”", {"nulls": "NA -"}),
        ('s,n\n"1,5",2\n', {}, "choose it under “Decimals”", {"decimal": ","}),
        ("s,n\n1,2\n,4\n", {"sums": "total"}, "“Leave out rows without a number”", {"skip": True}),
        (
            "q\n1\n",
            {"formulas": "e = exp(q/3)", "statistics": {"q": {"scale": "2"}}},
            "without “Standard errors”",
            {"stderr": False},
        ),
    ],
    ids=["missing", "decimals", "rows", "variance"],
)
def test_every_error_has_a_remedy_on_the_page(tmp_path, text, asked, remedy, heeded):
    error = run(tmp_path, text, **asked)
    assert remedy in error["hint"]
    assert "--" not in error["hint"]
    assert "tmp" not in error["message"]
    assert "rows" in run(tmp_path, text, **asked, **heeded)


@pytest.mark.parametrize(("bias", "given"), [({"bias": "0.2"}, 0.2), ({"cells": "50"}, None)])
def test_a_file_with_the_bias_that_is_chosen(tmp_path, bias, given):
    from trueup import nearly_unbiased

    made = run(tmp_path, "s,n\n3.0,2\n", **bias)
    laws = {"s": Laplace(2), "n": DiscreteLaplace(2)}
    asked = {"cells": 50} if given is None else {"max_bias": given, "relative": True}
    near = nearly_unbiased("s/n", laws, {"n": (1, None)}, **asked)
    assert float(made["rows"][0][2]) == pytest.approx(near(s=3.0, n=2), rel=1e-9)
    assert float(made["rows"][0][2]) != pytest.approx(expected(3.0, 2)[0], rel=1e-3)


def test_no_column_of_scales_is_none():
    from trueup.explorer.worker import answer

    asked = answer("job", {**MEAN, "header": ["s", "n"], "scales": {"s": None, "n": ""}})
    assert asked["scales"] == {}


def test_a_condition_counts_in_every_formula_that_it_speaks_of():
    from trueup.explorer.views import file

    count = {"family": "discrete_laplace", "scale": "2"}
    asked = {"known": "0 <= s <= n", "empty": "0", "statistics": {"s": count, "n": count}}
    asked["formulas"] = "r = s/n\ntwice = 2*t"
    made = file._estimators(asked, file._forms(asked))
    law = {"s": DiscreteLaplace(2), "n": DiscreteLaplace(2)}
    est = unbiased("s/n", law, "0 <= s <= n", empty=0)
    assert made["r"](s=9, n=8) == pytest.approx(est(s=9, n=8), rel=1e-12)
    assert made["twice"](t=2.5) == 5


def test_an_upload_that_is_refused_is_called_by_its_name(server):
    for name, body in [("odd.parquet", b"PAR1 no PAR1"), ("bare.csv", b"\n\n"), ("none.csv", b"")]:
        error = upload(server, body, name).json["error"]
        assert f"“{name}”" in error["message"]
        assert "input." not in error["message"]
    key = upload(server, CELLS).json["id"]
    error = server.post(f"/api/files/{key}", MEAN).json["error"]
    assert error["message"].startswith("“cells.csv” has no column 'n'")
    assert error["kind"] == "missing"


def test_the_report_names_errors_by_size_the_break_even_and_empty_cells(tmp_path):
    import numpy as np

    from trueup import report

    rng, law = np.random.default_rng(3), DiscreteLaplace(2)
    n = np.repeat([1, 4, 40, 400], 40)
    noisy = {"s": 3 * n + law.sample(160, rng=rng), "n": n + law.sample(160, rng=rng)}
    text = "s,n\n" + "".join(f"{s},{n}\n" for s, n in zip(*noisy.values(), strict=True))
    count = {"family": "discrete_laplace", "scale": "2"}
    asked = {"s": count, "n": {**count, "low": "1"}}
    made = run(tmp_path, text, formulas="frame = s/n", statistics=asked)["report"]
    assert made["reason"] == ""
    (shown,) = made["decisions"]
    est = unbiased("s/n", {"s": law, "n": law}, {"n": (1, None)})
    direct = report(pyarrow.table(noisy), mean=est)
    assert (shown["name"], shown["size"]) == ("frame", "n")
    for row, other in zip(shown["rows"], direct.rows, strict=True):
        assert (row["sizes"], row["cells"]) == (other["sizes"], other["cells"])
        assert row["unbiased"] == pytest.approx(other["unbiased"], rel=1e-6)
        assert row["break_even"] == other["break_even"]
    small, large = shown["rows"][0], shown["rows"][-2]
    assert small["clipped"] < small["unbiased"]
    assert large["clipped"] == pytest.approx(large["unbiased"], rel=0.05)
    assert any("cells are too noisy" in line for line in shown["conclusions"])
    assert any("n = 0: " in line for line in shown["conclusions"])
