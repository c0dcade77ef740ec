"""`python3 clients/lab/report.py RESULTS`: the tables of docs/clients.md, from the file of `--results RESULTS`."""

import json
import sys
from pathlib import Path

import matrix

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "clients.md"
BEGIN, END = "<!-- tables: written by clients/lab/report.py -->", "<!-- end of the tables -->"
# Outcomes, best first; the worst of all models counts.
ORDER = ("pass", "shown", "cannot", "FAIL")
ALL = matrix.runs()


def table(results, mark=None):
    """Table with a row per client and a column per scenario; `shown` means that the user saw an error."""
    clients, scenarios = both(results)
    mark = mark or worst
    rows = [[titled(it), *(mark(results, it, name) for name in scenarios)] for it in clients]
    return drawn(["client", *scenarios], rows)


def turned(results, mark):
    """Table with a row per scenario and a column per client, for few clients with many scenarios."""
    clients, scenarios = both(results)
    rows = [[name, *(mark(results, it, name) for it in clients)] for name in scenarios]
    return drawn(["scenario", *map(titled, clients)], rows)


def both(results):
    """Clients and scenario names of the results, in order."""
    run = {it["client"] for it in results}
    names = dict.fromkeys(it.name for it in matrix.SCENARIOS)
    played = {it["scenario"] for it in results}
    return [it for it in matrix.CLIENTS if it.name in run], [it for it in names if it in played]


def titled(client):
    version = client.version()
    return client.name if client.name.endswith(version) else f"{client.name} {version}"


def outcomes(results, client, scenario):
    here = (client.name, scenario)
    return {it["model"]: it["outcome"] for it in results if (it["client"], it["scenario"]) == here}


def worst(results, client, scenario):
    """The worst outcome of all models."""
    return max(outcomes(results, client, scenario).values(), key=ORDER.index, default="–")


def complete(results, client, scenario):
    """The worst outcome of all models in a full run, with the models that were run if some are missing."""
    models = {model for it, played, model in ALL if it is client and played.name == scenario}
    run = outcomes(results, client, scenario).keys()
    if models and not run:
        return "not run"
    only = "" if models <= run else f" on {', '.join(sorted(run))}"
    return worst(results, client, scenario) + only


def drawn(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def latest(place):
    """Outcome of each run; the last entry counts."""
    found = {}
    for line in Path(place).read_text().splitlines():
        it = json.loads(line)
        found[it["client"], it["scenario"], it["model"]] = it
    return found


def passed(place):
    """Runs that are finished."""
    return {run for run, it in latest(place).items() if it["outcome"] != "FAIL"}


def main(place):
    results = list(latest(place).values())
    agents = [it for it in results if it["is_agent"]]
    others = [it for it in results if not it["is_agent"]]
    models = sorted({it["model"] for it in results})
    said = f"{len(results)} of {len(ALL)} runs, on {' and '.join(models)}."
    written = "\n\n".join([BEGIN, said, turned(agents, complete), table(others, complete), END])
    text = DOCUMENT.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    DOCUMENT.write_text(before + written + after)
    failed = [it for it in results if it["outcome"] == "FAIL"]
    print(f"{len(results)} runs, {len(failed)} failed")


if __name__ == "__main__":
    main(sys.argv[1])
