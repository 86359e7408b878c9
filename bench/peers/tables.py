#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of docs/performance.md from bench/results/*.json, so that no figure is typed by hand.

  python3 bench/peers/tables.py            writes the page
  python3 bench/peers/tables.py --check    fails where the page is not what would be written

The page has a pair of markers for each file, and what stands between them is written:

  <!-- results: attention.json -->
  <!-- end of results -->

Python's own library is enough.
"""
import argparse
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
END = "<!-- end of results -->"
PLACE = re.compile(r"^<!-- results: (\S+) -->\n(.*?)^" + re.escape(END) + "$", re.MULTILINE | re.DOTALL)
BUSY_CORES = 0.2  # as in compare.py
NOT_MEASURED = "Not measured yet: `bench/results/{}` is not there.\n"


def table(header, rows):
    lines = ["| " + " | ".join(map(str, line)) + " |\n" for line in (header, *rows)]
    return "".join([lines[0], "|---" * len(header) + "|\n", *lines[1:]])


def ratio(x):
    return f"{x:.2f}"


def figure(x):
    """Three digits, and no exponent."""
    return f"{x:.0f}" if x >= 100 else f"{x:.3g}"


def or_dash(x, text=figure):
    return "-" if x is None else text(x)


def about(results):
    """One paragraph: where, when and with what."""
    versions = ", ".join(name + " " + v for name, v in results["versions"].items() if name != "heed")
    rounds = results["rounds"]
    cores = results["busy_cores_before"]
    busy = f" Others used {cores} cores when it began." if cores > BUSY_CORES else ""
    return f"{results['cpu']}, {results['simd']}, {results['date']}, {results['versions']['heed']}, {versions}; {rounds} rounds.{busy}\n\n"


def unique(values):
    return list(dict.fromkeys(values))


def compared(results, first="row"):
    """attention.json, layers.json, train.json: heed's time, and the ratio of each peer, by number of threads."""
    threads = unique(row["threads"] for row in results["rows"])
    peers = unique(peer for row in results["rows"] for peer in row["peers"])
    by_key = {(row["name"], row["threads"]): row for row in results["rows"]}
    trains = any("percent_of_peak" in row for row in results["rows"])
    header = [first]
    for n in threads:
        header += [f"heed, ms, {n} thr."] + ([f"tokens/s, {n} thr.", f"% of peak, {n} thr."] if trains else [])
        header += [f"{peer}, {n} thr." for peer in peers]
    lines = []
    for name in unique(row["name"] for row in results["rows"]):
        line = [name]
        for n in threads:
            row = by_key.get((name, n), {"peers": {}})
            line.append(or_dash(row.get("heed_ms")))
            if trains:
                line += [or_dash(row.get("tokens_per_second")), or_dash(row.get("percent_of_peak"), lambda x: f"{x:.0f}")]
            line += [or_dash(row["peers"].get(peer, {}).get("ratio"), ratio) for peer in peers]
        lines.append(line)
    return about(results) + table(header, lines)


def translated(results):
    """translate-*.json: output tokens a second, and the ratio to CTranslate2 in each of its types."""
    kinds = unique(row["ctranslate2_type"] for row in results["rows"])
    by_key = {(row["threads"], row["batch"], row["beam"], row["ctranslate2_type"]): row for row in results["rows"]}
    header = ["threads", "batch", "beam", "heed, tokens/s"]
    for kind in kinds:
        header += [f"CTranslate2 {kind}, tokens/s (workers x threads)", f"ratio to {kind} (lowest, highest)"]
    lines = []
    for threads, batch, beam in unique(key[:3] for key in by_key):
        found = [by_key.get((threads, batch, beam, kind)) for kind in kinds]
        line = [threads, batch, beam, figure(next(row for row in found if row)["heed_tokens_per_second"])]
        for row in found:
            if row is None:
                line += ["-", "-"]
                continue
            line.append(f"{figure(row['ctranslate2_tokens_per_second'])} ({row['split']})")
            line.append(f"{ratio(row['ratio'])} ({ratio(row['ratio_lowest'])}, {ratio(row['ratio_highest'])})")
        lines.append(line)
    sources = f"{results['sentences']} sentences of {results['source_tokens']} tokens"
    sources += f" (one by one, {results['sentences_alone']} of them)"
    length = f"outputs forced to {results['max_length']} tokens" if results["forced"] else "outputs as long as they come"
    equal = results["sentences"] - results["greedy_outputs_that_differ"]
    said = f"{sources}, {length}; {equal} of {results['sentences']} greedy outputs equal token for token. "
    said += f"CTranslate2 says: {'; '.join(results['ctranslate2_backend'])}.\n\n"
    return about(results) + said + table(header, lines)


def generated(results):
    """generate.json, as `heed bench generate --json` writes it."""
    rows = [
        [row["batch"], row["length"], figure(row["prompt_tokens_per_second"]), figure(row["steps_tokens_per_second"])]
        + [figure(row["step_ms"])]
        for row in results["rows"]
    ]
    threads = f"{results['threads']} thread{'' if results['threads'] == 1 else 's'}"
    said = f"{results['cpu']}, {results['simd']}, {results['date']}, {threads}; {results['model']}; {results['rounds']} rounds.\n\n"
    return said + table(["batch", "tokens before", "prompt, tokens/s", "steps, tokens/s", "one step, ms"], rows)


TABLES = {
    "attention.json": compared,
    "layers.json": compared,
    "train.json": lambda results: compared(results, first="model"),
    "translate-small.json": translated,
    "translate-base.json": translated,
    "translate-small-int8-1.json": translated,
    "translate-small-int8-2.json": translated,
    "generate.json": generated,
}


def section(folder, name):
    """What stands between the markers of a file."""
    if name not in TABLES:
        raise SystemExit(f"a marker names {name}, expected one of {', '.join(TABLES)}")
    file = folder / name
    if not file.is_file():
        return NOT_MEASURED.format(name)
    try:
        return TABLES[name](json.loads(file.read_text()))
    except (KeyError, ValueError) as error:
        raise SystemExit(f"{file}: {type(error).__name__} {error}, expected what bench/peers writes") from error


def written(page, folder):
    """The page with its tables made anew."""
    places = [match.group(1) for match in PLACE.finditer(page)]
    if page.count("<!-- results: ") != len(places):
        raise SystemExit(f"the page has a '<!-- results: ... -->' without a line '{END}' after it")
    missing = [name for name in TABLES if name not in places]
    if missing:
        raise SystemExit(f"the page has no markers for {', '.join(missing)}")
    return PLACE.sub(lambda match: f"<!-- results: {match.group(1)} -->\n{section(folder, match.group(1))}{END}", page)


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the page would change")
    parser.add_argument("--page", type=pathlib.Path, default=ROOT / "docs/performance.md")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "bench/results")
    options = parser.parse_args(arguments)
    before = options.page.read_text()
    after = written(before, options.results)
    if options.check:
        if before != after:
            raise SystemExit(f"{options.page} differs from {options.results}: run python3 bench/peers/tables.py")
        return
    options.page.write_text(after)


if __name__ == "__main__":
    main(sys.argv[1:])
