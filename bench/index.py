#!/usr/bin/env python3
"""Writes bench/results/README.md: a line for each record, the latest of each kind.

    python3 bench/index.py [--prune]

The kind of a record is its name without the date. With --prune, older records of a kind are removed, but for those that documents and
machines point at.
"""
import json
import re
import sys

import records

FOLDER = records.ROOT / "bench/results"


def kinds():
    """The records of each kind, the latest first."""
    found = {}
    for path in sorted(FOLDER.glob("*.json"), reverse=True):
        date, kind = re.fullmatch(r"(\d{4}-\d\d-\d\d)-(.*)", path.stem).groups()
        found.setdefault(kind, []).append((date, path))
    return found


def main():
    rows = []
    pointers = "".join(path.read_text() for folder in ["docs", "machines"] for path in (records.ROOT / folder).rglob("*.*")
                       if path.suffix in (".md", ".toml"))
    for kind, paths in sorted(kinds().items()):
        for _, path in paths[1:]:
            if "--prune" in sys.argv and path.name not in pointers:
                path.unlink()
        date, path = paths[0]
        record = json.loads(path.read_text())
        runs = record.get("runs", [{}])
        head = {**(runs[0] if isinstance(runs, list) and runs and isinstance(runs[0], dict) else {}), **record}
        rows.append(f"| [{kind}]({path.name}) | {date} | {head.get('device', '')} | {str(head.get('commit', ''))[:8]} | "
                    f"`{' '.join(str(head.get('command', '')).split())}` |")
    (FOLDER / "README.md").write_text("# Records\n\nThe latest of each kind. `python3 bench/index.py` writes this page.\n\n"
                                      "| record | date | device | commit | command |\n|---|---|---|---|---|\n" + "\n".join(rows) + "\n")
    print(f"{len(rows)} kinds", file=sys.stderr)


if __name__ == "__main__":
    main()
