# SPDX-License-Identifier: Apache-2.0
"""Parse the command line of ``airflow-cdc`` and, with the same verbs, ``airflow cdc``; call the function of a verb."""

from __future__ import annotations

import argparse
import atexit
import gc
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from airflow_provider_cdc.commands.registry import VERBS
from airflow_provider_cdc.commands.verbs import Verb

_COMMANDS = "airflow_provider_cdc.commands"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb.

    :param arguments: without the program's name; those of the process if None.
    """
    parser = _parser()
    args, left = parser.parse_known_args(arguments)
    if len(left) == 1 and not left[0].startswith("-") and getattr(args, "table", "") is None:
        args.table = left.pop()  # argparse takes an optional name only where no option stands before it
    if left:
        parser.error(f"unrecognized arguments: {' '.join(left)}")
    return _run(args.verb, args)


def program() -> int:
    """Run one verb in a process of its own."""
    # collections while modules are loaded, and the last one, find nothing: a tenth of the CPU of a small command
    gc.set_threshold(50_000)
    atexit.register(gc.freeze)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy starts a thread a core; each runs in a loop for a while
    _look_in_database()
    return main()


def _look_in_database() -> None:
    """Let Airflow find connections in its database, too, as its own commands about connections do."""
    os.environ.setdefault("_AIRFLOW_PROCESS_CONTEXT", "server")


def airflow_commands() -> list[Any]:
    """Return the same verbs for ``airflow cdc``."""
    from airflow.cli.cli_config import ActionCommand, Arg, GroupCommand

    def action(verb: Verb) -> Any:
        def call(args: argparse.Namespace) -> None:
            _look_in_database()
            sys.exit(_run(verb, args))

        arguments = [Arg(flags=argument.flags, **argument.settings) for argument in verb.arguments]
        return ActionCommand(name=verb.name, help=verb.help, func=call, args=arguments)

    help_text = "CDC logs in Kafka to lakehouse tables"
    return [GroupCommand(name="cdc", help=help_text, subcommands=[action(verb) for verb in VERBS])]


def _parser() -> argparse.ArgumentParser:
    from airflow_provider_cdc import __version__

    epilog = (
        "exit codes: 0 done or nothing to do, 2 configuration, 3 data (tables parked, quarantine, format undecided), "
        "5 try again (tables wait for a schema change, something was unavailable, somebody else is at work)"
    )
    parser = argparse.ArgumentParser("airflow-cdc", description="CDC logs in Kafka to lakehouse tables.", epilog=epilog)
    parser.add_argument("--version", action="version", version=f"airflow-cdc {__version__}")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    for verb in VERBS:
        mine = verbs.add_parser(verb.name, help=verb.help, description=f"{verb.help[0].upper()}{verb.help[1:]}.")
        mine.set_defaults(verb=verb)
        for argument in verb.arguments:
            mine.add_argument(*argument.flags, **argument.settings)
    return parser


def _run(verb: Verb, args: argparse.Namespace) -> int:
    from airflow_provider_cdc.commands.output import guarded

    work = _function(verb.home)
    return guarded(lambda: work(args), args)


def _function(home: str) -> Callable[[argparse.Namespace], int]:
    module, name = home.split(":")
    function: Callable[[argparse.Namespace], int] = getattr(importlib.import_module(f"{_COMMANDS}.{module}"), name)
    return function


if __name__ == "__main__":
    sys.exit(program())
