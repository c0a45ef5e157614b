"""``trueup completion``: a script that teaches a shell the commands and options."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

HELP = "Print a script for tab completion in bash, zsh or fish."

EXAMPLES = """\
examples:
  trueup completion bash > ~/.local/share/bash-completion/completions/trueup
  trueup completion zsh > "${fpath[1]}/_trueup"
  trueup completion fish > ~/.config/fish/completions/trueup.fish
"""


class Option(NamedTuple):
    """A long option of a command."""

    name: str
    help: str
    takes_value: bool
    choices: tuple[str, ...]


class Command(NamedTuple):
    """A command, what it is for, its options, and the words it takes."""

    name: str
    help: str
    options: tuple[Option, ...]
    words: tuple[str, ...]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="for which shell")


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    from trueup.cli import build_parser

    write = {"bash": bash, "zsh": zsh, "fish": fish}[args.shell]
    print(write(list(commands(build_parser()))), end="")
    return 0


def commands(parser: argparse.ArgumentParser) -> Iterator[Command]:
    """Yield the commands of a parser, as it knows them."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, sub in action.choices.items():
                yield _command(name, helps.get(name, ""), sub)


def _command(name: str, text: str, parser: argparse.ArgumentParser) -> Command:
    options: list[Option] = []
    words: list[str] = []
    for action in parser._actions:
        choices = tuple(map(str, action.choices or ()))
        long = [o for o in action.option_strings if o.startswith("--")]
        if long:
            options.append(Option(long[0], action.help or "", action.nargs != 0, choices))
        elif not action.option_strings:
            words += choices
    return Command(name, text, tuple(options), tuple(words))


def bash(found: list[Command]) -> str:
    """Return the script for bash."""
    cases, values = [], []
    for command in found:
        listed = " ".join([*(o.name for o in command.options), *command.words])
        cases.append(f"    {command.name}) words='{listed}' ;;")
        values += [
            f"    {command.name}:{o.name}) words='{' '.join(o.choices)}' ;;"
            for o in command.options
            if o.choices
        ]
        plain = [f"{command.name}:{o.name}" for o in command.options if _free(o)]
        values += [f"    {'|'.join(plain)}) words='' ;;"] * bool(plain)
    names = " ".join([*(c.name for c in found), "--help", "--version"])
    return "\n".join(
        [
            "# bash completion for trueup",
            "_trueup() {",
            '  local word="${COMP_WORDS[COMP_CWORD]}" last="${COMP_WORDS[COMP_CWORD-1]}" words',
            '  case "${COMP_WORDS[1]}" in',
            *cases,
            f"    *) words='{names}' ;;",
            "  esac",
            f"  if [ \"$COMP_CWORD\" -eq 1 ]; then words='{names}'; fi",
            '  case "${COMP_WORDS[1]}:$last" in',
            *values,
            "  esac",
            '  COMPREPLY=($(compgen -W "$words" -- "$word"))',
            "}",
            "complete -o bashdefault -o default -F _trueup trueup",
            "",
        ]
    )


def _free(option: Option) -> bool:
    """Whether an option takes a value of which nothing is known: a file name will do."""
    return option.takes_value and not option.choices


def zsh(found: list[Command]) -> str:
    """Return the script for zsh."""
    lines = ["#compdef trueup", "_trueup() {", "  local -a commands", "  commands=("]
    lines += [f"    {_zsh(f'{c.name}:{c.help}')}" for c in found]
    lines += [
        "  )",
        "  if (( CURRENT == 2 )); then",
        "    _describe command commands",
        "    _arguments '--help[show help]' '--version[show the version]'",
        "    return",
        "  fi",
        "  case ${words[2]} in",
    ]
    for command in found:
        specs = [_zsh_option(option) for option in command.options]
        rest = f"'*:word:({' '.join(command.words)})'" if command.words else "'*:file:_files'"
        lines += [f"    {command.name})", f"      _arguments {' '.join([*specs, rest])} ;;"]
    lines += ["  esac", "}", 'if [ "$funcstack[1]" = "_trueup" ]; then', '  _trueup "$@"']
    return "\n".join([*lines, "else", "  compdef _trueup trueup", "fi", ""])


def _zsh_option(option: Option) -> str:
    text = option.help.replace("[", "(").replace("]", ")").replace(":", " -")
    value = ""
    if option.takes_value:
        value = f":value:({' '.join(option.choices)})" if option.choices else ":value:_files"
    return _zsh(f"*{option.name}[{text}]{value}")


def _zsh(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def fish(found: list[Command]) -> str:
    """Return the script for fish."""
    lines = ["# fish completion for trueup", "complete -c trueup -l help -d 'show help'"]
    for command in found:
        lines.append(
            f"complete -c trueup -n __fish_use_subcommand -f -a {command.name} "
            f"-d {_fish(command.help)}"
        )
        seen = f"-n '__fish_seen_subcommand_from {command.name}'"
        if command.words:
            lines.append(f"complete -c trueup {seen} -f -a '{' '.join(command.words)}'")
        for option in command.options:
            value = f" -x -a '{' '.join(option.choices)}'" if option.choices else ""
            value = value or " -r" * option.takes_value
            name = option.name.removeprefix("--")
            lines.append(f"complete -c trueup {seen} -l {name}{value} -d {_fish(option.help)}")
    return "\n".join([*lines, ""])


def _fish(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
