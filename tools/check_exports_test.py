# SPDX-License-Identifier: Apache-2.0
"""The check of exports can fail: declarations that need the mark, those that do not, and what --fix makes of them."""
import unittest

import check_exports


class CheckExports(unittest.TestCase):
    def names(self, body):
        return [name for _, name in check_exports.unmarked(f"namespace heed {{\n\n{body}\n\n}}  // namespace heed\n")]

    def test_functions(self):
        self.assertEqual(self.names("void run(int n);"), ["run"])
        self.assertEqual(self.names("[[noreturn]] void fail(const std::string& text = {});"), ["fail"])
        self.assertEqual(self.names("std::vector<int> list(std::function<void(int)> f) noexcept;"), ["list"])
        self.assertEqual(self.names("namespace detail {\nvoid run();\n}\nvoid walk();"), ["run", "walk"])
        self.assertEqual(self.names("HEED_API void run(int n);"), [])

    def test_what_is_defined_needs_no_mark(self):
        self.assertEqual(self.names("inline void run() {}\nconstexpr int f(int n) { return n; }"), [])
        self.assertEqual(self.names("using F = std::function<void(int)>;\nenum class Kind { one, two };"), [])
        self.assertEqual(self.names("template <class T>\nvoid run(T x);\ntemplate <class T>\nvoid run(T x) { x(); }"), [])
        self.assertEqual(self.names("class Tape;\nstruct Plain { int n = 0; float x{f(1)}; int (*call)(int); };"), [])
        self.assertEqual(self.names("// void run(int n);\ninline const char* kText = \"void run();\";"), [])

    def test_a_template_that_is_instantiated_elsewhere(self):
        text = "template <class T>\nT read(int n);\nextern template float read(int);"
        self.assertEqual(self.names(text), ["read"])

    def test_classes(self):
        self.assertEqual(self.names("class Tape {\n public:\n  void clear();\n};"), ["Tape"])
        self.assertEqual(self.names("struct Norm {\n  explicit Norm(int n = 1);\n  int f() { return 1; }\n};"), ["Norm"])
        self.assertEqual(self.names("class Base {\n public:\n  virtual ~Base() = default;\n};"), ["Base"])
        self.assertEqual(self.names("struct Outer {\n  struct Inner {\n    void run();\n  };\n};"), ["Outer"])
        self.assertEqual(self.names("class Own final : public Base {\n  int f() override { return 1; }\n};"), ["Own"])
        self.assertEqual(self.names("class HEED_API Tape {\n public:\n  void clear();\n};"), [])
        inline = "struct S {\n  S() = default;\n  S(int n) : n_(n) {}\n  bool operator==(const S&) const = default;\n};"
        self.assertEqual(self.names(inline), [])
        self.assertEqual(self.names("template <class T>\nclass List {\n  void push(T x);\n};"), [])

    def test_fix(self):
        source = "#pragma once\n#include <string>\n\nnamespace heed {\n\nclass Tape {\n  void run();\n};\nvoid go();\n}\n"
        fixed = check_exports.fixed(source)
        self.assertIn("class HEED_API Tape {", fixed)
        self.assertIn("\nHEED_API void go();", fixed)
        self.assertIn('#include <string>\n\n#include "heed/base/export.h"\n', fixed)
        self.assertEqual(check_exports.unmarked(fixed), [])
        self.assertEqual(check_exports.fixed(fixed), fixed)


if __name__ == "__main__":
    unittest.main()
