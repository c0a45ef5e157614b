"""A few of the million texts, those that once went wrong, and readers with planted faults."""

import dataclasses
import json
import os

import pytest

from prove import inputs
from prove.inputs import Fault, Tally, examine, of_seeds, shrunk, smallest
from prove.kept import DISAGREEMENT
from prove.readers import READERS, Reader
from trueup.errors import TrueupError

COUNT = 1_500
FEW = 2
"""Faults of fresh texts that do not fail a run: they are told at its end, and kept."""


def test_fresh_texts_are_read_or_refused(record_property):
    """``python -m prove.inputs --processes 1 --count 1500 --seed …`` reads them again."""
    tallies = inputs.run(int(os.environ["TRUEUP_SEED"]), COUNT)
    found = [f for tally in tallies.values() for f in tally.faults]
    certain = [f for f in found if examine(inputs.by_name(f.reader), f.text)]
    for fault in certain:
        record_property(DISAGREEMENT, json.dumps(fault._asdict(), ensure_ascii=False))
    assert len(certain) <= FEW, certain


def test_the_same_texts_are_read_or_refused_every_time():
    tallies = inputs.run(1, COUNT)
    assert not [f for tally in tallies.values() for f in tally.faults]
    assert all(
        tally.taken < tally.texts or name in _NEVER_REFUSED for name, tally in tallies.items()
    )


_NEVER_REFUSED = ("bounds and names",)  # five readers in one: each refusal is taken by itself


def test_what_was_found_is_mended():
    for record in inputs.kept():
        fault = examine(inputs.by_name(record["reader"]), record["text"])
        assert (fault is not None) == record["open"], (record, fault)


def test_texts_are_functions_of_their_seeds():
    for reader in READERS:
        drawn = [reader.draw(seed) for seed in range(40)]
        assert drawn == [reader.draw(seed) for seed in range(40)]
        assert len(set(drawn)) > 20


def test_shares_are_a_million():
    assert sum(inputs.shares(10**6).values()) == 10**6


# -- planted faults --------------------------------------------------------------------------------


def planted(read) -> Reader:
    """Return the reader of noises with something wrong in it."""
    good = inputs.by_name("noise")

    def reading(text: str) -> None:
        read(text)
        good.read(text)

    return dataclasses.replace(good, read=reading)


def raises(text: str) -> None:
    if "sensitivity" in text:
        raise ValueError(text)


def loops(text: str) -> None:
    while "sensitivity" in text:
        pass


def hoards(text: str) -> None:
    if "sensitivity" in text:
        bytearray(b"x" * (inputs.MEMORY + 2**20))


def swallows(text: str) -> None:
    """Loop, and take the interruption for an error of its own."""
    while "sensitivity" in text:
        try:
            loops(text)
        except BaseException as error:
            raise TrueupError("too long", "shorten it") from error


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (raises, "ValueError"),
        (loops, "TooMuchError"),
        (swallows, "TooMuchError"),
        (hoards, "MemoryError"),
    ],
)
def test_a_planted_fault_is_found(fault, error, monkeypatch):
    monkeypatch.setattr(inputs, "LONG", 0.2)
    monkeypatch.setattr(inputs, "LINES", 100_000)
    monkeypatch.setattr(inputs, "MEMORY", 64 * 2**20)
    reader = planted(fault)
    drawn = ((seed, reader.draw(seed)) for seed in range(2_000))
    seeds = [seed for seed, text in drawn if "sensitivity" in text][:3]
    assert {f.error.partition(":")[0] for f in of_seeds(reader, seeds).faults} == {error}
    assert not of_seeds(inputs.by_name("noise"), seeds).faults


def test_a_text_is_shrunk_to_what_matters():
    reader = planted(raises)
    fault = Fault("noise", "staircase(0.5, sensitivity=2) + laplace(1)", "ValueError: …", "outside")

    def shows(text: str) -> bool:
        found = examine(reader, text)
        return found is not None and found.kind == fault.kind

    assert shrunk(fault.text, shows) == "sensitivity"


def test_a_process_that_dies_is_a_fault_at_its_text(monkeypatch):
    worker = inputs._Worker()
    try:
        worker.process.kill()
        worker.at.value = 7
        fault = worker.taken().faults[0]
    finally:
        worker.end()
    assert fault.text == READERS[0].draw(7)
    assert fault.error.startswith("Died")
    assert smallest(fault) == fault


def test_sums_add_up():
    one, two = Tally(3, 2, 7), Tally(1, 1, 9, [Fault("noise", "", "E: x", "y")])
    one.add(two)
    assert (one.texts, one.taken, one.memory, len(one.faults)) == (4, 3, 9, 1)
