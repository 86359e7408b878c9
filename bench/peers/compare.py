# SPDX-License-Identifier: Apache-2.0
"""What attention.py, layers.py and train.py share: rounds of heed and its peers in turn, and what is written of them.

heed is started anew in every round, and times itself (`heed bench ... --json`). A peer's call is timed as heed bench
does it: by the processor time of the thread where there is one thread, by the wall clock where there are several; so
many calls that a sample lasts two milliseconds, after one that is not counted; the median of a few samples. The ratio
of a round is the peer's time over heed's: above 1, heed is the faster. A row has the medians over the rounds. Where a peer
has several ways to do the same (two operators of ONNX Runtime, say), its fastest counts.
"""
import argparse
import datetime
import json
import math
import os
import pathlib
import platform
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLE_SECONDS = 2e-3
SLOW_SECONDS = 0.1  # one sample a round is enough
SAMPLES = 3
BUSY_CORES = 0.2


def numbers(text):
    return [int(part) for part in text.split(",")]


def arguments(description, result, rounds):
    """The options that all scripts have; `result` is the name of the file in bench/results."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heed", default=str(ROOT / "build/release/heed"), help="the binary")
    parser.add_argument("--out", default=str(ROOT / "bench/results" / result), help="file for the figures")
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--threads", type=numbers, default=[1, 2])
    parser.add_argument("--filter", default="", help="only rows whose name has all of these words")
    return parser


def selected(rows, words):
    """Rows whose names have all the words."""
    found = [row for row in rows if all(word in row["name"] for word in words.split())]
    if not found:
        names = ", ".join(repr(row["name"]) for row in rows[:3])
        raise SystemExit(f"--filter is {words!r} and leaves no row, expected words of names such as {names}")
    return found


class Heed:
    def __init__(self, binary):
        self.binary = binary
        self.version = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout.strip()

    def bench(self, *command):
        """What `heed bench` writes to its JSON file."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "heed.json"
            command = [self.binary, "bench", *map(str, command), "--json", str(file)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            return json.loads(file.read_text())

    def one_row(self, *command):
        """The same of a command that measures a single row."""
        found = self.bench(*command)
        if len(found["rows"]) != 1:
            raise SystemExit(f"heed bench {' '.join(map(str, command))} has {len(found['rows'])} rows, expected 1")
        return {**found, **found["rows"][0]}


class Timed:
    """A call of a peer, ready to be timed."""

    def __init__(self, call, threads):
        self.call = call
        self.clock = time.thread_time if threads == 1 else time.perf_counter
        call()
        self.calls = 1
        seconds = self.seconds()
        while seconds * self.calls < SAMPLE_SECONDS and self.calls < 4096:
            self.calls *= 2
            seconds = min(seconds, self.seconds())
        self.calls = max(1, math.ceil(SAMPLE_SECONDS / seconds))
        self.samples = 1 if seconds > SLOW_SECONDS else SAMPLES

    def seconds(self):
        start = self.clock()
        for _ in range(self.calls):
            self.call()
        return (self.clock() - start) / self.calls

    def ms(self):
        if self.calls > 1:
            self.call()
        found = 1e3 * statistics.median(self.seconds() for _ in range(self.samples))
        # Pools go on to wait actively for a while after a call: the next one must not be measured meanwhile.
        time.sleep(0.3)
        return found


def rounded(x):
    return float(f"{x:.4g}")


def figures(ours, ways):
    """A peer's part of a row: ways [name -> ms by round], of which the fastest counts."""
    best = min(ways, key=lambda way: statistics.median(ways[way]))
    ratios = [theirs / own for own, theirs in zip(ours, ways[best])]
    found = {
        "ms": rounded(statistics.median(ways[best])),
        "ratio": rounded(statistics.median(ratios)),
        "ratio_lowest": rounded(min(ratios)),
        "ratio_highest": rounded(max(ratios)),
    }
    if len(ways) > 1:
        found["way"] = best
        found["all_ways_ms"] = {way: rounded(statistics.median(times)) for way, times in ways.items()}
    return found


def measure(rounds, threads, heed, peers):
    """heed() -> its JSON, with ms; peers: name -> {way -> call}. All in turn, round after round."""
    timed = {peer: {way: Timed(call, threads) for way, call in ways.items()} for peer, ways in peers.items()}
    time.sleep(0.3)
    ours, theirs = [], {peer: {way: [] for way in ways} for peer, ways in timed.items()}
    for _ in range(rounds):
        ours.append(heed())
        for peer, ways in timed.items():
            for way, call in ways.items():
                theirs[peer][way].append(call.ms())
    own = [found["ms"] for found in ours]
    return ours, {
        "heed_ms": rounded(statistics.median(own)),
        "peers": {peer: figures(own, ways) for peer, ways in theirs.items()},
    }


def processor_times():
    """Busy and all, in the system's ticks, of all cores since it started."""
    user, nice, system, idle, waiting, *rest = map(int, pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:])
    busy = user + nice + system + sum(rest[:3])
    return busy, busy + idle + waiting


def busy_cores():
    """How many cores others use, in the second before anything is measured; said aloud where there are some. Two threads
    on two cores then wait for each other, and a pool that spins (PyTorch's OpenMP) loses many times over."""
    before = processor_times()
    time.sleep(1)
    busy, total = (b - a for a, b in zip(before, processor_times()))
    cores = round(os.cpu_count() * busy / max(total, 1), 2)
    if cores > BUSY_CORES:
        print(f"Others use {cores} cores of this machine: ratios by the wall clock mean nothing.", flush=True)
    return cores


def new_report(options, versions):
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": None,
        "simd": None,
        "versions": {**versions, "python": platform.python_version()},
        "busy_cores_before": busy_cores(),
        "rounds": options.rounds,
        "rows": [],
    }


def add_row(report, facts, row):
    """Appends a row, prints it, and takes over what heed says of the machine."""
    report["cpu"], report["simd"] = facts["cpu"], facts["simd"]
    report["rows"].append(row)
    parts = [f"{peer} {f['ms']:>9} ms, ratio {f['ratio']:>6}" for peer, f in row["peers"].items()]
    print(f"{row['name']:<56} {row['threads']} thread(s)  heed {row['heed_ms']:>9} ms   " + "   ".join(parts), flush=True)


def write(report, path):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=2) + "\n")
    print(f"written: {path}")
