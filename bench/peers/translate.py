#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Translation: heed against CTranslate2, with the same weights, over the same ids, in the same rounds.

  bench/peers/setup.sh /tmp/peers
  /tmp/peers/bin/python bench/peers/translate.py --model model --data corpus/test.tsv
  /tmp/peers/bin/python bench/peers/translate.py --preset transformer-base --allow-differences 4

With --preset the parameters are random, of a fixed seed (`heed bench translate --save`), the sources random ids, and every
output is forced to the same length: speed can be compared without any training. Such a model is often undecided between two
tokens, so that rounding may decide: --allow-differences says how many outputs may differ.

First the model is converted, and the greedy outputs of both in f32 are compared token for token: where they differ, nothing
is measured. Then, for each number of threads, batch and beam, rounds of both alternate: a call that is not timed, and
one that is, by the wall clock, without opening the model. CTranslate2 runs with all splits of
the threads into workers and threads of a worker; its fastest split counts. The ratio of a round is heed's output tokens
a second over CTranslate2's, each by the tokens of its own outputs; the table has medians over the rounds. Above 1, heed
is the faster. Both compute in f32, or both in int8 (--type), heed from
the folder that `heed convert --weights int8` writes.
"""
import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import compare
import ctranslate2
import ctranslate2_model
import numpy as np

RANDOM_LENGTH = 24  # as heed bench translate's


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--model", help="folder of a heed model that translates")
    which.add_argument("--preset", help="in place of a folder: a model with random parameters")
    parser.add_argument("--vocabulary", type=int, default=32000, help="tokens of such a model")
    parser.add_argument("--data", help="sentences, one a line; without: as heed bench translate makes them")
    parser.add_argument("--heed", default=str(compare.ROOT / "build/release/heed"), help="the binary")
    parser.add_argument("--out", default=str(compare.ROOT / "bench/results/translate.json"), help="file for the figures")
    parser.add_argument("--sentences", type=int, default=256, help="with two workers, two batches at least")
    parser.add_argument("--alone", type=int, default=32, help="the first of them, where they come one by one: slower")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=compare.numbers, default=[1, 2])
    parser.add_argument("--batch", type=compare.numbers, default=[1, 32])
    parser.add_argument("--beam", type=compare.numbers, default=[1, 4])
    parser.add_argument("--type", default="float32", choices=["float32", "int8"], help="what both compute in")
    parser.add_argument("--max-length", type=int, default=64, help="tokens of an output at most")
    parser.add_argument(
        "--length", type=int, default=0, help="tokens that every output is forced to have; 0: as they come, with --preset 24"
    )
    parser.add_argument("--allow-differences", type=int, default=0, help="sentences whose greedy outputs may differ")
    return parser.parse_args()


def sentences_of(options, batch):
    return min(options.sentences, options.alone) if batch == 1 else options.sentences


class Heed:
    """The binary; it times itself, so that its start and the opening of the model do not count."""

    def __init__(self, options, folder):
        self.options, self.file = options, pathlib.Path(folder) / "heed.json"

    def folder(self, kind):
        """The model for this type; in int8 it is converted when it is first needed."""
        if kind != "int8":
            return self.options.model
        folder = self.file.parent / "heed-int8"
        if not folder.exists():
            command = [self.options.heed, "convert", "--weights", "int8", self.options.model, str(folder)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return str(folder)

    def run(self, threads, batch, beam, kind="float32", ids=False):
        o = self.options
        sentences = str(sentences_of(o, batch))
        command = [o.heed, "bench", "translate", "--model", self.folder(kind), "--sentences", sentences, "--rounds", "1"]
        command += ["--threads", str(threads), "--batch", str(batch), "--beam", str(beam), "--json", str(self.file)]
        command += ["--length", str(o.length)] if o.length else ["--max-length", str(o.max_length)]
        command += ["--data", o.data] if o.data else []
        command += ["--ids"] if ids else []
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return json.loads(self.file.read_text())

    def rate(self, row):
        return self.run(row["threads"], row["batch"], row["beam"], row["ctranslate2_type"])["rows"][0]["tokens_per_second"]


class CTranslate2:
    """One split of the threads, in one type."""

    def __init__(self, folder, kind, workers, threads_of_worker):
        self.name = f"{workers} x {threads_of_worker}"
        self.translator = ctranslate2.Translator(
            folder, device="cpu", compute_type=kind, inter_threads=workers, intra_threads=threads_of_worker
        )

    def outputs(self, options, sources, batch, beam):
        found = self.translator.translate_batch(
            sources,
            max_batch_size=batch,
            beam_size=beam,
            length_penalty=1,
            max_decoding_length=options.length or options.max_length,
            min_decoding_length=options.length,
            # heed never gives these; a trained model does not want to, and CTranslate2 then needs no list.
            suppress_sequences=[[ctranslate2_model.PAD], [ctranslate2_model.BEGIN]] if options.preset else None,
        )
        return [one.hypotheses[0] for one in found]

    def rate(self, options, sources, batch, beam):
        self.outputs(options, sources, batch, beam)
        start = time.perf_counter()
        outputs = self.outputs(options, sources, batch, beam)
        seconds = time.perf_counter() - start
        # Its threads go on to wait actively for a while after a call: heed must not be measured meanwhile.
        time.sleep(0.3)
        return sum(map(len, outputs)) / seconds


def compare_outputs(options, heed, folder):
    """The sources as both take them, what heed says of the machine, and how many greedy outputs differ."""
    facts = heed.run(1, 32, 1, ids=True)
    sources = [[str(i) for i in ids] for ids in facts.pop("sources")]
    ours = [[str(i) for i in ids] for ids in facts["rows"][0]["outputs"]]
    theirs = CTranslate2(folder, "float32", 1, 1).outputs(options, sources, 32, 1)
    different = [i for i in range(len(ours)) if ours[i] != theirs[i]]
    tokens = sum(map(len, ours))
    print(f"greedy outputs: {len(ours) - len(different)} of {len(ours)} equal token for token, {tokens} tokens")
    for i in different[:3]:
        print(f"  sentence {i}: heed {' '.join(ours[i])}\n    CTranslate2 {' '.join(theirs[i])}")
    if tokens == 0:
        raise SystemExit("translate.py: all outputs are empty, expected a model that translates, or --length")
    if len(different) > options.allow_differences:
        raise SystemExit(
            f"translate.py: {len(different)} greedy outputs differ, expected at most {options.allow_differences}"
        )
    return sources, facts, len(different)


def save_random_model(options, folder):
    """Writes the model of --preset, by a run that is as short as it can be."""
    command = [options.heed, "bench", "translate", "--preset", options.preset, "--vocabulary", str(options.vocabulary)]
    command += ["--save", folder, "--sentences", "1", "--rounds", "1", "--length", "1", "--batch", "1", "--beam", "1"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def splits(threads):
    """All ways to have `threads` as workers times threads of a worker."""
    return [(workers, threads // workers) for workers in range(1, threads + 1) if threads % workers == 0]


def backend(folder):
    """Which instruction set and products CTranslate2 has chosen: it says so in its log alone."""
    code = f"import ctranslate2; ctranslate2.Translator({folder!r}, device='cpu')"
    log = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "CT2_VERBOSE": "1"}, capture_output=True, text=True, check=True
    ).stderr
    wanted = ("Selected ISA", "Use Intel MKL", "SGEMM backend", "GEMM_S8 backend")
    return [line.split("] ")[-1].strip(" -") for line in log.splitlines() if any(word in line for word in wanted)]


def measure(options, heed, peers, sources, row):
    """Rates by round, heed's and those of each peer, in turn."""
    ours, theirs = [], {peer: [] for peer in peers}
    sources = sources[: sentences_of(options, row["batch"])]
    for _ in range(options.rounds):
        ours.append(heed.rate(row))
        for peer, rates in theirs.items():
            rates.append(peer.rate(options, sources, row["batch"], row["beam"]))
    best = max(peers, key=lambda peer: statistics.median(theirs[peer]))
    ratios = [a / b for a, b in zip(ours, theirs[best])]
    return {
        **row,
        "split": best.name,
        "heed_tokens_per_second": round(statistics.median(ours), 1),
        "ctranslate2_tokens_per_second": round(statistics.median(theirs[best]), 1),
        "ratio": round(statistics.median(ratios), 3),
        "ratio_lowest": round(min(ratios), 3),
        "ratio_highest": round(max(ratios), 3),
        "all_splits": {peer.name: round(statistics.median(rates), 1) for peer, rates in theirs.items()},
    }


def main():
    options = arguments()
    busy_cores = compare.busy_cores()
    with tempfile.TemporaryDirectory() as work:
        folder = str(pathlib.Path(work) / "ctranslate2")
        if options.preset:
            options.model = str(pathlib.Path(work) / "model")
            options.length = options.length or RANDOM_LENGTH
            save_random_model(options, options.model)
        ctranslate2_model.convert(options.model, folder)
        heed = Heed(options, work)
        sources, facts, different = compare_outputs(options, heed, folder)
        version = subprocess.run([options.heed, "--version"], capture_output=True, text=True, check=True).stdout.strip()
        report = {
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
            "cpu": facts["cpu"],
            "simd": facts["simd"],
            "versions": {"heed": version, "ctranslate2": ctranslate2.__version__, "numpy": np.__version__},
            "ctranslate2_backend": backend(folder),
            "model": json.loads((pathlib.Path(options.model) / "config.json").read_text())["transformer"],
            "busy_cores_before": busy_cores,
            "sentences": len(sources),
            "sentences_alone": sentences_of(options, 1),
            "source_tokens": sum(map(len, sources)),
            "max_length": options.length or options.max_length,
            "forced": options.length > 0,
            "random_parameters": options.preset is not None,
            "rounds": options.rounds,
            "greedy_outputs_that_differ": different,
            "rows": [],
        }
        print(f"{report['cpu']}, {report['simd']}, {version}, CTranslate2 {ctranslate2.__version__}")
        print("\n".join(report["ctranslate2_backend"]))
        print(f"{'threads':>7} {'batch':>5} {'beam':>4} {'type':>8} {'split':>6} {'heed tok/s':>11} {'CT2 tok/s':>11} {'ratio':>7}")
        for threads in options.threads:
            peers = [CTranslate2(folder, options.type, *split) for split in splits(threads)]
            for batch in options.batch:
                for beam in options.beam:
                    row = {"threads": threads, "batch": batch, "beam": beam, "ctranslate2_type": options.type}
                    f = measure(options, heed, peers, sources, row)
                    report["rows"].append(f)
                    print(
                        f"{threads:>7} {batch:>5} {beam:>4} {options.type:>8} {f['split']:>6}"
                        f" {f['heed_tokens_per_second']:>11} {f['ctranslate2_tokens_per_second']:>11} {f['ratio']:>7}",
                        flush=True,
                    )
    out = pathlib.Path(options.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=2) + "\n")
    print(f"written: {out}")


if __name__ == "__main__":
    main()
