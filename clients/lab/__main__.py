"""`python3 clients/lab [NAME…] [--all] [--model MODEL] [--scenario NAME] [--table FILE]`: real clients on toolgate."""

import argparse
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import agents
import features
import install
import programs
import scenarios
import sessions
import stage
from run import Run

ARTEFACTS = install.FOLDER / "artefacts"


def main():
    options = parsed()
    clients = chosen(agents.ALL + programs.ALL, options.names, "client")
    wanted = chosen(scenarios.ALL + sessions.ALL + features.ALL, options.scenario, "scenario")
    cells = [
        (client, scenario, model)
        for client in clients
        for scenario in wanted
        for model in scenario.models
        if is_wanted(client, scenario, model, options)
    ]
    folders = dict.fromkeys(client.folder for client, _, _ in cells)
    if install.NEEDS_NODE & set(folders):
        folders = {"node22": None} | folders
    installer = install.Installer(folders)
    # In the order in which they will be there.
    order = list(install.versions())
    cells.sort(key=lambda cell: order.index(cell[0].folder))
    why = stage.loopback_only()
    if why:
        print(f"note: the clients can reach the network, because this machine keeps them in it: {why}")
    binary = options.binary or str(install.TARGET / "debug" / "toolgate")
    checker = str(Path(binary).parent / "examples" / "grammar")
    with ThreadPoolExecutor(options.jobs) as pool:
        runs = list(pool.map(lambda cell: played(cell, binary, checker, installer), cells))
    installer.end()
    print()
    print(table(runs))
    if options.table:
        Path(options.table).write_text(table(runs) + "\n")
    failed = [run for run in runs if run.difference]
    for run in failed:
        print(f"{run.client.name} · {run.scenario.name} · {run.model}: {run.difference}")
    print(f"{len(runs) - len(failed)} passed, {len(failed)} failed", end="")
    print(f"; traffic is in {ARTEFACTS}" if failed else "")
    return 1 if failed else 0


def parsed():
    parser = argparse.ArgumentParser(prog="cargo xtask clients")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--all", action="store_true", help="every scenario on every model")
    parser.add_argument("--model", help="on this model only")
    parser.add_argument("--scenario", action="append", default=[], help="this scenario only")
    parser.add_argument("--binary", help="another toolgate than the debug one")
    parser.add_argument("--table", help="write the table into this file too")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    return parser.parse_args()


def chosen(known, names, what):
    unknown = set(names) - {it.name for it in known}
    if unknown:
        raise SystemExit(f"error: no {what} {sorted(unknown)[0]}; there are {', '.join(it.name for it in known)}")
    return [it for it in known if not names or it.name in names]


def is_wanted(client, scenario, model, options):
    if scenario.agents_only and not client.is_agent:
        return False
    if (scenario.programs_only and client.is_agent) or not scenario.suits(client):
        return False
    if len(scenario.prompts_for(client)) > 1 and not client.can_resume:
        return False
    # Without the gateway nobody saves a turn: an SDK gives on whatever Gemini said.
    if client.is_direct and scenario.is_faulty and scenario.name != "429":
        return False
    if scenario.name == "no-arguments" and not client.nothing():
        return False
    if options.model:
        return model == options.model
    if options.all or options.scenario:
        return True
    # The thinned matrix: the newer model, and the scenarios that have found most.
    is_thin = scenario.name in client.thin if client.thin else scenario.thin
    return is_thin and model == scenarios.NEW


def played(cell, binary, checker, installer):
    client, scenario, model = cell
    run = Run(client, scenario, model)
    try:
        if client.folder in install.NEEDS_NODE:
            installer.wait_for("node22")
        installer.wait_for(client.folder)
        run.play(binary, checker, ARTEFACTS / f"{client.name}-{scenario.name}-{model}")
    except RuntimeError as error:
        run.difference = str(error)
    verdict = run.difference or "passed"
    print(f"{client.name:<20} {scenario.name:<16} {model:<18} {run.took:5.1f} s  {verdict}", flush=True)
    return run


def table(runs):
    """Clients down, scenarios across: `pass`, `shown` where the user was told, or the first difference."""
    names = list(dict.fromkeys(run.scenario.name for run in runs))
    lines = ["| client | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for client in dict.fromkeys(run.client for run in runs):
        cells = []
        for name in names:
            here = [run for run in runs if run.client is client and run.scenario.name == name]
            cells.append(mark(here))
        lines.append(f"| {client.name} {client.version()} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def mark(runs):
    if not runs:
        return "–"
    if any(run.difference for run in runs):
        return "FAIL"
    return "pass" if all(run.is_done() for run in runs) else "shown"


if __name__ == "__main__":
    sys.exit(main())
