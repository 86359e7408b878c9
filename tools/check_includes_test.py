# SPDX-License-Identifier: Apache-2.0
"""The check of includes can fail: small trees with one wrong include each, and some that are right."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import check_includes


class CheckIncludes(unittest.TestCase):
    def complaints(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, text in files.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            return check_includes.check(root)[0]

    def assert_fails(self, path, include, sentence):
        """`include` on the second line of `path` gives exactly one complaint, there, with this text."""
        found = self.complaints({path: f"// a comment\n#include {include}\n"})
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(f"{path}:2: "), found[0])
        self.assertIn(sentence, found[0])

    def assert_passes(self, path, include):
        self.assertEqual(self.complaints({path: f"#include {include}\n"}), [])

    def test_downwards(self):
        self.assert_passes("heed/kernels/attention/plan.cc", '"heed/base/view.h"')
        self.assert_passes("heed/nn/attention.h", '"heed/tensor/tensor.h"')
        self.assert_passes("cli/bench.cc", '"heed/kernels/attention/attention.h"')
        self.assert_passes("heed/kernels/attention/tiles.cc", '"heed/kernels/vec-inl.h"')

    def test_upwards(self):
        self.assert_fails("heed/base/view.h", '"heed/tensor/tensor.h"', "heed/base may not include heed/tensor")
        self.assert_fails("heed/kernels/rnn.cc", '"heed/ops/rnn.h"', "heed/kernels may not include heed/ops")
        self.assert_fails("heed/lab/lengths.cc", '"cli/main.h"', "heed/lab may not include cli")

    def test_sideways(self):
        self.assert_fails("heed/decode/beam.cc", '"heed/train/metrics.h"', "heed/decode may not include heed/train")
        self.assert_fails("heed/kernels/softmax.h", '"heed/tensor/dtype.h"', "heed/kernels may not include heed/tensor")

    def test_attention_stands_alone(self):
        self.assert_fails(
            "heed/kernels/attention/tiles.cc", '"heed/kernels/product.h"', "attention may not include heed/kernels ("
        )
        self.assert_fails("heed/kernels/attention/tiles.cc", '"heed/kernels/reference/attention.h"', "may not include")

    def test_tests_see_the_twin(self):
        self.assert_passes("heed/kernels/attention/forward_test.cc", '"heed/kernels/reference/attention.h"')
        self.assert_fails("heed/kernels/attention/forward_test.cc", '"heed/ops/attention.h"', "may not include")

    def test_owned_libraries(self):
        self.assert_fails("heed/kernels/product.cc", "<cblas.h>", "products are heed's own")
        self.assert_passes("heed/base/parallel.cc", "<mutex>")
        self.assert_passes("heed/base/workspace_test.cc", "<thread>")
        for header in ("<thread>", "<mutex>", "<condition_variable>", "<atomic>"):
            self.assert_fails("heed/kernels/attention/plan.cc", header, "only base/parallel knows threads")
        self.assert_passes("heed/kernels/attention/tiles.cc", '"hwy/highway.h"')
        self.assert_fails("heed/base/workspace.cc", '"hwy/highway.h"', "only kernels know SIMD")
        self.assert_fails("heed/base/view.cc", "<gtest/gtest.h>", "only tests know the test libraries")

    def test_public_headers(self):
        self.assert_fails("heed/kernels/attention/attention.h", "<hwy/highway.h>", "in a public header")
        self.assert_fails("heed/base/describe.h", "<nlohmann/json.hpp>", "in a public header")
        self.assert_passes("heed/kernels/attention/tiles-inl.h", "<hwy/highway.h>")
        self.assert_passes("heed/base/view.h", "<cstddef>")

    def test_internal_headers(self):
        self.assert_fails("heed/kernels/attention/observe.h", '"heed/kernels/attention/plan.h"', "plan.h is internal")
        self.assert_fails("heed/attention.h", '"heed/kernels/attention/testing.h"', "testing.h is internal")
        self.assert_passes("heed/kernels/attention/blocks.h", '"heed/kernels/attention/plan.h"')
        self.assert_passes("heed/kernels/attention/plan.cc", '"heed/kernels/attention/plan.h"')

    def test_front_headers(self):
        self.assert_passes("heed/attention.h", '"heed/kernels/attention/attention.h"')
        self.assert_fails("heed/attention.h", '"heed/kernels/softmax.h"', "heed/attention.h may not include")
        self.assert_passes("heed/heed.h", '"heed/attention.h"')
        self.assert_fails("heed/base/view.h", '"heed/attention.h"', "heed/base may not include heed/attention.h")

    def test_relative_paths(self):
        found = self.complaints({"heed/base/view.h": "", "heed/base/view.cc": '#include "view.h"\n'})
        self.assertEqual(len(found), 1, found)
        self.assertIn("write it from the root", found[0])

    def test_unknown_folder(self):
        self.assertIn("no line in MAY_INCLUDE", self.complaints({"heed/magic/magic.h": ""})[0])

    def test_exit_code(self):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, "heed", "base", "view.h")
            source.parent.mkdir(parents=True)
            command = [sys.executable, check_includes.__file__, folder]
            source.write_text("#include <cstdint>\n")
            self.assertEqual(subprocess.run(command, capture_output=True).returncode, 0)
            source.write_text('#include "heed/nn/pass.h"\n')
            self.assertEqual(subprocess.run(command, capture_output=True).returncode, 1)


if __name__ == "__main__":
    unittest.main()
