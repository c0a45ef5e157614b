"""The command line: exit codes, messages, and how little it takes to start."""

import os
import resource
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import trueup
import trueup.cli.paper
from trueup.cli import COMMANDS, main

SOURCE = Path(trueup.__file__).parent


def python(*arguments, **environment):
    return subprocess.run(  # noqa: S603  (our own code)
        [sys.executable, *arguments],
        capture_output=True,
        check=False,
        encoding="utf-8",
        env={**os.environ, **environment},
    )


def fail_with(monkeypatch, error):
    def run(args):
        raise error

    monkeypatch.setattr(trueup.cli.paper, "run", run)


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"trueup {trueup.__version__}\n"


def test_help_shows_commands_and_examples(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert "examples:" in out
    assert all(name in out for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(name, capsys):
    assert main([name, "--help"]) == 0
    assert "examples:" in capsys.readouterr().out
    module = import_module(f"trueup.cli.{name}")
    assert module.HELP.endswith(".")
    assert callable(module.configure)
    assert callable(module.run)


@pytest.mark.parametrize("argv", [["nonsense"], ["paper", "--nonsense"], ["paper", "extra"], []])
def test_wrong_usage_is_2_and_shows_usage(argv, capsys):
    assert main(argv) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "usage: trueup" in captured.err


@pytest.mark.parametrize(
    ("line", "hint"),
    {
        "debais": "did you mean trueup debias?",
        "Report": "did you mean trueup report?",
        "total": "did you mean trueup debias … --total?",
        "ratio": "did you mean trueup debias … --ratio?",
        "plan": "did you mean trueup release … --plan?",
        "nonsense": f"the commands are {', '.join(COMMANDS)}",
        "explore --port abc": "trueup explore --help shows what it takes",
        "debias": "trueup debias --help shows what it takes",
        "debias a.csv b.csv --nonsense": "trueup debias --help shows what it takes",
        "--nonsense": "trueup --help shows what it takes",
    }.items(),
)
def test_wrong_usage_ends_with_a_hint(line, hint, capsys):
    assert main(line.split()) == 2
    assert capsys.readouterr().err.endswith(f"\nHint: {hint}\n")


def test_our_errors_are_message_and_hint_without_traceback(monkeypatch, capsys):
    fail_with(monkeypatch, trueup.TrueupError("scale must be positive, got -1", "give e.g. 2"))
    assert main(["paper"]) == 1
    captured = capsys.readouterr()
    assert captured.err == "trueup: scale must be positive, got -1\nHint: give e.g. 2\n"
    assert captured.out == ""


def test_errors_of_the_system_are_worded_like_ours(monkeypatch, capsys):
    fail_with(monkeypatch, PermissionError(13, "Permission denied", "/no/such/x"))
    assert main(["paper"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("trueup: /no/such/x: Permission denied\nHint: ")


def test_interrupt_is_130(monkeypatch, capsys):
    fail_with(monkeypatch, KeyboardInterrupt())
    assert main(["paper"]) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_python_m_trueup():
    done = python("-m", "trueup", "--version")
    assert (done.returncode, done.stdout) == (0, f"trueup {trueup.__version__}\n")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_closed_pipe_is_quiet(unbuffered):
    code = (
        "import sys, trueup.cli.paper\n"
        "trueup.cli.paper.run = lambda args: print('a report') or 0\n"
        "sys.exit(trueup.cli.main(['paper']))"
    )
    process = subprocess.Popen(  # noqa: S603  (our own code)
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )
    process.stdout.close()  # before it has had time to write
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 141
    assert err == b""


def test_terminal_without_greek_does_not_fail():
    code = (
        "import sys, trueup.cli.paper\n"
        "trueup.cli.paper.run = lambda args: print('ε = 1') or 0\n"
        "sys.exit(trueup.cli.main(['paper']))"
    )
    done = python("-c", code, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (done.returncode, done.stdout, done.stderr) == (0, "? = 1\n", "")


def test_the_command_itself_imports_nothing_heavy():
    code = (
        "import sys, types\n"
        "package = types.ModuleType('trueup')\n"
        f"package.__path__ = [{str(SOURCE)!r}]\n"
        "sys.modules['trueup'] = package\n"  # without what `import trueup` brings along
        "from trueup.cli import main\n"
        "code = main(['--help'])\n"
        "heavy = {'numpy', 'scipy', 'sympy', 'matplotlib', 'duckdb', 'pyarrow', 'sqlglot'}\n"
        "heavy &= set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else code)"
    )
    done = python("-c", code)
    assert (done.returncode, done.stderr) == (0, "")


def test_help_takes_less_than_half_a_second_of_the_processor():
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert python("-m", "trueup", "--help").returncode == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.5
