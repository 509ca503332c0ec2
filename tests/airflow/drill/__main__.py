# SPDX-License-Identifier: Apache-2.0
"""Play incidents, print what is said of each first, and end it by the words of the page alone.

Its commands are run as they are printed, by a person who does in between what the words ask for. It takes about twenty
minutes and runs by hand, as root because a file system has to fill: ``python -m tests.airflow.drill [INCIDENT ...]``.
With the package ``statsd`` on the path, metrics are heard, too.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

from tests.airflow.drill.ground import Ground, ground
from tests.airflow.drill.incidents import INCIDENTS, Incident, first_rows


@dataclass
class Heard:
    """Hold what was said of an incident, by who said it, and what came of following the page."""

    said: dict[str, str]
    done: list[str] = field(default_factory=list)
    left: str = ""


def hear(ground: Ground, name: str, log: str) -> dict[str, str]:
    """Return what log, alarm, metrics and command line say now."""
    warnings = [line for line in log.splitlines() if line.startswith(("error", "warning"))]
    alarm = ground.folder / f"{name}.alarm"
    said = {
        "log": "\n".join(warnings) or log[-500:],
        "alarm": alarm.read_text() if alarm.exists() else "",
        "metrics": ground.metrics.taken(),
    }
    for verb in ("lag", "tables") if name == "paused" else ("sync", "tables"):
        ran = ground.types(f"airflow-cdc {verb} {name}.yaml")
        said[f"airflow-cdc {verb}"] = f"exit {ran.returncode}\n{ran.stdout}{ran.stderr}"
    return said


def play(ground: Ground, name: str, incident: Incident) -> Heard:
    """Make an incident, hear what is said, and follow the page."""
    first_rows(ground, name)
    incident.before(ground, name)
    ground.metrics.taken()
    log = incident.make(ground, name)
    (need,) = ground.needs(name)
    heard = Heard({"page": "\n".join([need["happened"], need["means"], need["do"], *need["commands"]])})
    heard.said |= hear(ground, name, log)
    incident.repair(ground, name)
    for number, command in enumerate(need["commands"]):
        typed = ground.types(command)
        heard.done.append(f"{command} -> {typed.returncode}\n{typed.stdout[-600:]}\n{typed.stderr[-300:]}")
        incident.after.get(number, lambda ground, name: None)(ground, name)
    try:
        ground.runs(name, "success")
        heard.left = str(ground.needs(name) or "")
    except AssertionError as error:
        heard.left = str(error)
    incident.stop(ground, name)
    notes = {thing["id"]: thing.get("note") for thing in ground.things(name)}
    if notes != incident.notes:
        heard.left += f"the table has {notes} instead of {incident.notes}"
    return heard


def main(names: list[str]) -> int:
    """Play incidents and print what was heard; return 1 where the words did not end one."""
    incidents = names or list(INCIDENTS)
    ended = []
    with ground({name: INCIDENTS[name].settings for name in incidents}) as on:
        for name in incidents:
            heard = play(on, name, INCIDENTS[name])
            ended.append(not heard.left)
            print(f"\n##### {name}: {'NOT ENDED' if heard.left else 'ended'} {heard.left}")
            for who, words in heard.said.items():
                print(f"--- {who}\n{words}")
            print("--- done", *heard.done, sep="\n", flush=True)
    return 0 if all(ended) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
