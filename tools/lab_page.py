#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what was measured into docs/lab.md, from docs/lab/NAME.json (the result.json of `heed lab NAME`), so that no
figure is typed by hand.

  python3 tools/lab_page.py            writes the page
  python3 tools/lab_page.py --check    fails where the page is not what would be written
  python3 tools/lab_page.py --take DIR takes the results of `heed lab all --out DIR` first

The picture of an experiment is the first plot of its page, docs/lab/NAME.svg: web/test/plots.mjs saves them.

The page has a pair of markers for each experiment, and what stands between them is written:

  <!-- lab: scale -->
  <!-- end of lab -->
"""
import argparse
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "lab.md"
RESULTS = ROOT / "docs" / "lab"
PLACE = re.compile(r"^<!-- lab: (\w+) -->\n(.*?)^<!-- end of lab -->$", re.MULTILINE | re.DOTALL)


def row(cells):
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def table(one):
    lines = [row(one["columns"]), "|" + "---|" * len(one["columns"]) + "\n", *map(row, one["rows"])]
    return one["title"] + ":\n\n" + "".join(lines) + "\n"


def section(name):
    """What stands between the markers of an experiment."""
    file = RESULTS / f"{name}.json"
    if not file.is_file():
        return f"\nNot measured yet: `docs/lab/{name}.json` is not there.\n\n"
    result = json.loads(file.read_text())
    text = f"\n{result['claim']} {result['method']}\n\n"
    for finding in result["findings"]:
        outcome = "Held" if finding["held"] else "Did not hold"
        text += f"- **{outcome}**: {finding['test']}. Measured: {finding['measured']}.\n"
    text += "\n" + "".join(map(table, result["tables"]))
    if (RESULTS / f"{name}.svg").is_file():
        text += f"![{result['pictures'][0]}](lab/{name}.svg)\n\n"
    where = f"{result['threads']} threads, {result['machine']}, {result['date']}"
    return text + f"`{result['command']}`: {result['seconds']:.0f} s, {where}.\n\n"


def page(text):
    return PLACE.sub(lambda at: f"<!-- lab: {at[1]} -->\n{section(at[1])}<!-- end of lab -->", text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the page would change")
    parser.add_argument("--take", metavar="DIR", type=pathlib.Path, help="results to be copied to docs/lab before")
    options = parser.parse_args()
    if options.take:
        RESULTS.mkdir(exist_ok=True)
        for file in sorted(options.take.glob("*/result.json")):
            result = json.loads(file.read_text())
            if result["quick"]:
                raise SystemExit(f"{file} is of a quick run, expected a full one")
            result["pictures"] = [plot["title"] for plot in result.pop("plots")]
            (RESULTS / f"{result['name']}.json").write_text(json.dumps(result, indent=1) + "\n")
    text = PAGE.read_text()
    new = page(text)
    if not options.check:
        PAGE.write_text(new)
    elif new != text:
        raise SystemExit("docs/lab.md is not what docs/lab/*.json say: run python3 tools/lab_page.py")


if __name__ == "__main__":
    main()
