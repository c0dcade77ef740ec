"""`python3 clients/schemas`: validates every golden answer, whole and streamed, against its vendor's schema."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import schemas
from schemas import install

GOLDEN = install.ROOT / "crates" / "toolgate-core" / "tests" / "golden"
DIALECTS = ("anthropic", "responses", "chat", "gemini")


def main():
    faults, count = {}, 0
    for form in ("unary", "stream", "error"):
        for path in sorted((GOLDEN / form).glob("*.snap")):
            for dialect, name, found in answers(form, path):
                count += 1
                for fault in found:
                    faults.setdefault((dialect, fault), []).append(name)
    for (dialect, fault), names in sorted(faults.items()):
        print(f"{dialect}: {fault}   ({len(names)}: {names[0]})")
    for row in schemas.unused():
        print(f"exception without a case: {row}")
    print(f"{count} golden answers, {len(faults)} faults")
    if count < 100:
        sys.exit(f"error: only {count} golden answers were found")
    sys.exit(1 if faults or schemas.unused() else 0)


def answers(form, path):
    """Every answer of a snapshot as dialect, name and faults."""
    text = path.read_text().split("---\n", 2)[2].rstrip("\n")
    name = f"{form}/{path.name}"
    if form == "error":
        yield from errors(text, name)
        return
    dialect = path.name.split(".")[-2]
    if form == "stream":
        yield dialect, name, schemas.check_stream(dialect, text)
    elif text.startswith("HTTP "):
        yield dialect, name, schemas.check(dialect, "error", json.loads(text.partition("\n")[2]))
    else:
        yield dialect, name, schemas.check(dialect, "body", json.loads(text))


def errors(text, name):
    """Bodies of an error, each after a line `DIALECT: HTTP STATUS`."""
    for block in text.split("\n\n"):
        head, _, body = block.strip().partition("\n")
        dialect = head.partition(":")[0]
        if dialect not in DIALECTS:
            raise ValueError(f"{name}: unexpected line {head!r}")
        yield dialect, name, schemas.check(dialect, "error", json.loads(body))


if __name__ == "__main__":
    main()
