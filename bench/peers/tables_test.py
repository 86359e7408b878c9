# SPDX-License-Identifier: Apache-2.0
"""tables.py writes what the result files say, and --check notices a page that says something else."""
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import tables

MARKERS = "".join(f"## {name}\n\n<!-- results: {name} -->\n{tables.END}\n\nafter\n" for name in tables.TABLES)
MACHINE = {"date": "2026-01-02 03:04 UTC", "cpu": "A CPU", "simd": "AVX2", "rounds": 9, "busy_cores_before": 0.1}
PEER = {"ms": 3.0, "ratio": 1.5, "ratio_lowest": 1.25, "ratio_highest": 2.0}


class Tables(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.page = self.folder / "page.md"
        self.page.write_text(MARKERS)

    def run_tables(self, *more):
        tables.main(["--page", str(self.page), "--results", str(self.folder), *more])
        return self.page.read_text()

    def results(self, name, **more):
        versions = {"heed": "heed 0.1", "torch": "2.9"}
        (self.folder / name).write_text(json.dumps({**MACHINE, "versions": versions, **more}))

    def test_says_what_was_not_measured(self):
        page = self.run_tables()
        self.assertEqual(page.count("Not measured yet"), len(tables.TABLES))
        self.assertEqual(page.count("\nafter\n"), len(tables.TABLES))
        self.run_tables("--check")

    def test_has_a_column_for_each_peer_and_number_of_threads(self):
        both = {"PyTorch": PEER, "ONNX Runtime": {**PEER, "ratio": 0.5}}
        rows = [{"name": "forward", "threads": n, "heed_ms": 2.0 / n, "peers": both} for n in (1, 2)]
        rows.append({"name": "backward", "threads": 1, "heed_ms": 1234.5, "peers": {"PyTorch": PEER}})
        self.results("attention.json", rows=rows)
        page = self.run_tables()
        self.assertIn("| row | heed, ms, 1 thr. | PyTorch, 1 thr. | ONNX Runtime, 1 thr. | heed, ms, 2 thr. |", page)
        self.assertIn("| forward | 2 | 1.50 | 0.50 | 1 | 1.50 | 0.50 |\n", page)
        self.assertIn("| backward | 1234 | 1.50 | - | - | - | - |\n", page)
        self.assertIn("A CPU, AVX2, 2026-01-02 03:04 UTC, heed 0.1, torch 2.9; 9 rounds.", page)

    def test_says_that_the_machine_was_busy(self):
        row = {"name": "gru", "threads": 1, "heed_ms": 2.0, "peers": {"PyTorch": PEER}}
        self.results("layers.json", rows=[row], busy_cores_before=1.5)
        self.assertIn("9 rounds. Others used 1.5 cores when it began.\n", self.run_tables())

    def test_shows_rates_of_training(self):
        own = {"heed_ms": 2000.0, "tokens_per_second": 2048.0, "percent_of_peak": 71.4}
        self.results("train.json", rows=[{"name": "base", "threads": 1, **own, "peers": {"PyTorch": PEER}}])
        self.assertIn("| base | 2000 | 2048 | 71 | 1.50 |\n", self.run_tables())

    def test_shows_types_of_ctranslate2_side_by_side(self):
        shared = {"threads": 2, "batch": 32, "beam": 4, "split": "2 x 1", "heed_tokens_per_second": 1500.0}
        shared |= {"ratio_lowest": 1.2, "ratio_highest": 1.6, "ctranslate2_tokens_per_second": 1000.0}
        rows = [
            {**shared, "ctranslate2_type": "float32", "ratio": 1.5},
            {**shared, "ctranslate2_type": "int8", "ratio": 0.75},
        ]
        facts = {"sentences": 64, "sentences_alone": 16, "source_tokens": 900, "max_length": 24, "forced": True}
        facts["greedy_outputs_that_differ"] = 1
        facts["ctranslate2_backend"] = ["Selected ISA: AVX2", "SGEMM backend: DNNL"]
        self.results("translate-base.json", rows=rows, **facts)
        page = self.run_tables()
        self.assertIn("| 2 | 32 | 4 | 1500 | 1000 (2 x 1) | 1.50 (1.20, 1.60) | 1000 (2 x 1) | 0.75 (1.20, 1.60) |\n", page)
        self.assertIn("64 sentences of 900 tokens (one by one, 16 of them), outputs forced to 24 tokens; 63 of 64 greedy outputs equal", page)
        self.assertIn("CTranslate2 says: Selected ISA: AVX2; SGEMM backend: DNNL.\n", page)

    def test_shows_what_bench_generate_writes(self):
        row = {"batch": 1, "length": 16, "steps": 32, "prompt_seconds": 0.5, "prompt_tokens_per_second": 32.0}
        row |= {"steps_tokens_per_second": 500.0, "step_ms": 2.0}
        results = {**MACHINE, "threads": 1, "model": "lm-small", "open_ms": None, "rows": [row]}
        (self.folder / "generate.json").write_text(json.dumps(results))
        self.assertIn("| 1 | 16 | 32 | 500 | 2 |\n", self.run_tables())

    def test_check_fails_where_a_figure_was_changed(self):
        self.results("layers.json", rows=[{"name": "gru", "threads": 1, "heed_ms": 2.0, "peers": {"PyTorch": PEER}}])
        page = self.run_tables()
        self.run_tables("--check")
        self.page.write_text(page.replace("1.50", "1.60"))
        with self.assertRaisesRegex(SystemExit, "differs from"):
            self.run_tables("--check")
        self.assertIn("1.60", self.page.read_text(), "a check writes nothing")

    def test_says_which_marker_is_wrong(self):
        self.page.write_text(MARKERS.replace("<!-- results: train.json -->", ""))
        with self.assertRaisesRegex(SystemExit, "no markers for train.json"):
            self.run_tables()
        self.page.write_text(MARKERS + "<!-- results: other.json -->\n")
        with self.assertRaisesRegex(SystemExit, "without a line"):
            self.run_tables()
        self.page.write_text(MARKERS + f"<!-- results: other.json -->\n{tables.END}\n")
        with self.assertRaisesRegex(SystemExit, "names other.json, expected one of attention.json"):
            self.run_tables()


if __name__ == "__main__":
    unittest.main()
