# SPDX-License-Identifier: Apache-2.0
"""What compare.py makes of the times of a row."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import compare


class Compare(unittest.TestCase):
    def test_takes_ratios_inside_a_round(self):
        found = compare.figures([1.0, 2.0, 4.0], {"eager": [3.0, 4.0, 4.0]})
        self.assertEqual(found, {"ms": 4.0, "ratio": 2.0, "ratio_lowest": 1.0, "ratio_highest": 3.0})

    def test_takes_the_fastest_way_of_a_peer(self):
        found = compare.figures([1.0, 1.0, 1.0], {"a": [5.0, 1.0, 5.0], "b": [3.0, 3.0, 3.0]})
        self.assertEqual((found["way"], found["ms"], found["ratio"]), ("b", 3.0, 3.0))
        self.assertEqual(found["all_ways_ms"], {"a": 5.0, "b": 3.0})

    def test_runs_all_in_turn(self):
        log = []

        def heed():
            log.append("heed")
            return {"ms": 2.0}

        calls = {"peer": {"one": lambda: log.append("one"), "other": lambda: log.append("other")}}
        ours, row = compare.measure(2, 1, heed, calls)
        turns = [name for i, name in enumerate(log) if i == 0 or log[i - 1] != name]
        self.assertEqual(turns, ["one", "other"] + 2 * ["heed", "one", "other"], "first each is calibrated")
        self.assertEqual(len(ours), 2)
        self.assertEqual(row["heed_ms"], 2.0)
        self.assertLess(row["peers"]["peer"]["ratio"], 1)

    def test_says_which_rows_there_are(self):
        rows = [{"name": "forward none"}, {"name": "forward causal"}]
        self.assertEqual(compare.selected(rows, "causal forward"), rows[1:])
        with self.assertRaisesRegex(SystemExit, "'decode' and leaves no row, expected words of names such as 'forward none'"):
            compare.selected(rows, "decode")


if __name__ == "__main__":
    unittest.main()
