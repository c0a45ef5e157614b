"""``trueup completion``: scripts that the shells read, with every command and option."""

import shutil
import subprocess

import pytest

from extras import missing
from trueup.cli import COMMANDS, build_parser
from trueup.cli.completion import commands
from trueup.files.formats import FORMATS


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_everything_is_in_the_script(shell, run):
    done = run("completion", shell)
    assert (done.code, done.err) == (0, "")
    for command in commands(build_parser()):
        assert command.name in done.out
        for option in command.options:
            assert (option.name if shell != "fish" else f"-l {option.name[2:]}") in done.out


def test_commands_are_read_from_the_parser():
    found = {c.name: c for c in commands(build_parser())}
    assert tuple(found) == COMMANDS
    decimal = next(o for o in found["debias"].options if o.name == "--decimal")
    assert decimal.choices == (".", ",")
    assert found["completion"].words == ("bash", "zsh", "fish")
    force = next(o for o in found["debias"].options if o.name == "--force")
    assert not force.takes_value


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_reads_it(shell, run, tmp_path):
    program = shutil.which(shell)
    if program is None:
        missing(f"{shell} is not installed here")
    script = tmp_path / "script"
    script.write_text(run("completion", shell).out)
    subprocess.run([program, "-n", str(script)], check=True, capture_output=True)  # noqa: S603


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["trueup", "de"], {"debias"}),
        (["trueup", "debias", "--compr"], {"--compression"}),
        (["trueup", "debias", "--from", ""], {*FORMATS}),
        (["trueup", "debias", "--from", "p"], {"parquet"}),
        (["trueup", "completion", "z"], {"zsh"}),
        (["trueup", "debias", "--spec", ""], set()),  # file names, by the shell's default
    ],
    ids=["command", "option", "choices", "choice", "word", "file"],
)
def test_bash_completes(words, expected, run, tmp_path):
    bash = shutil.which("bash")
    if bash is None:
        missing("bash is not installed")
    script = run("completion", "bash").out
    given = " ".join(f"'{w}'" for w in words)
    code = f"{script}\nCOMP_WORDS=({given}); COMP_CWORD={len(words) - 1}; _trueup\n"
    done = subprocess.run(  # noqa: S603  (our own code)
        [bash, "-c", code + 'printf "%s\\n" "${COMPREPLY[@]}"'],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert {*done.stdout.split()} == expected


def test_unknown_shell_is_2(run):
    assert run("completion", "tcsh").code == 2
