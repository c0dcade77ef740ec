"""`python3 clients/lab [NAME…] [--all] [--model MODEL] [--scenario NAME]`: real clients on toolgate."""

import argparse
import functools
import json
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import install
import matrix
import report
import scenarios
import stage
from run import Run

ARTEFACTS = install.FOLDER / "artefacts"
WRITING = threading.Lock()


def main():
    options = parsed()
    clients = chosen(matrix.CLIENTS, options.names, "client")
    wanted = chosen(matrix.SCENARIOS, options.scenario, "scenario")
    cells = [
        (client, scenario, model)
        for client in clients
        for scenario in wanted
        for model in scenario.models
        if is_wanted(client, scenario, model, options)
    ]
    if options.results and Path(options.results).exists():
        passed = report.passed(options.results)
        cells = [cell for cell in cells if (cell[0].name, cell[1].name, cell[2]) not in passed]
    # Every answer is validated against the vendors' schemas.
    folders = dict.fromkeys(["schemas", *(client.folder for client, _, _ in cells)])
    if install.NEEDS_NODE & set(folders):
        folders = {"node22": None} | folders
    installer = install.Installer(folders)
    # In the order of installation.
    order = list(install.versions())
    cells.sort(key=lambda cell: order.index(cell[0].folder))
    why = stage.loopback_only()
    if why:
        print(f"note: the clients can reach the network, because this machine keeps them in it: {why}")
    binary = options.binary or str(install.TARGET / "debug" / "toolgate")
    checker = str(Path(binary).parent / "examples" / "grammar")
    idle = [cell for cell in cells if cell[1].is_idle]
    busy = [cell for cell in cells if not cell[1].is_idle]
    with ThreadPoolExecutor(options.jobs) as pool, ThreadPoolExecutor(len(idle) or 1) as beside:
        play = functools.partial(played, binary=binary, checker=checker, installer=installer, options=options)
        waiting, working = beside.map(play, idle), pool.map(play, busy)
        runs = [*working, *waiting]
    installer.end()
    print()
    results = [run.result() for run in runs]
    print(report.table(results))
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
    parser.add_argument("--results", help="add what came of each run to this file, and leave out what has passed there")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    return parser.parse_args()


def chosen(known, names, what):
    unknown = set(names) - {it.name for it in known}
    if unknown:
        raise SystemExit(f"error: no {what} {sorted(unknown)[0]}; there are {', '.join(it.name for it in known)}")
    return [it for it in known if not names or it.name in names]


def is_wanted(client, scenario, model, options):
    if not matrix.plays(client, scenario):
        return False
    if options.model:
        return model == options.model
    if options.all or options.scenario:
        return True
    # The selected runs: the newer model, and the scenarios that have found the most defects.
    is_thin = scenario.thin if client.thin is None else scenario.name in client.thin
    return is_thin and model == scenarios.NEW


def played(cell, binary, checker, installer, options):
    client, scenario, model = cell
    run = Run(client, scenario, model)
    try:
        if client.folder in install.NEEDS_NODE:
            installer.wait_for("node22")
        installer.wait_for(client.folder)
        installer.wait_for("schemas")
        run.play(binary, checker, ARTEFACTS / f"{client.name}-{scenario.name}-{model}")
    except RuntimeError as error:
        run.difference = str(error)
    if options.results:
        with WRITING, open(options.results, "a") as file:
            file.write(json.dumps(run.result()) + "\n")
    verdict = run.difference or "passed"
    print(f"{client.name:<20} {scenario.name:<16} {model:<18} {run.took:5.1f} s  {verdict}", flush=True)
    return run


if __name__ == "__main__":
    sys.exit(main())
