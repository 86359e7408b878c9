# SPDX-License-Identifier: Apache-2.0
"""What a public header only declares is marked HEED_API: check_exports.py [--fix] <root of the sources>.

A shared library hides what is not marked, and a program that calls it does not link. Functions that a public header
declares without a body are to be marked, and so are classes that have such members, or virtual ones. With --fix the
marks are put in. It reads sources as this project writes them, not C++ at large.
"""
import pathlib
import re
import sys

import public_headers

MARK = "HEED_API"
INCLUDE = '#include "heed/base/export.h"'
# Beginnings of declarations that need no mark: they are defined where they stand, or define nothing.
EXEMPT = re.compile(
    r"(class|concept|consteval|constexpr|enum|extern|friend|inline|namespace|static_assert|struct|using)\b"
)
CLASS = re.compile(r"(class|struct)\s+(\[\[\w+\]\]\s*)?(HEED_API\s+)?(?P<name>\w+)(?!\s*<)[^;({]*\{")


def blanked(text):
    """The text with comments, strings and preprocessor lines as spaces, so that places stay the same."""
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#[^\n]*'
    return re.sub(pattern, lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.MULTILINE | re.DOTALL)


def closing(text, begin):
    """Where the bracket that opens at `begin` is closed."""
    depth = 0
    for place in range(begin, len(text)):
        depth += {"{": 1, "(": 1, "}": -1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place
    raise ValueError("a bracket is not closed")


def statements(text, begin, end):
    """(begin, end, body) of the declarations in a scope; body: where the braces of a definition open, or None."""
    start, place = begin, begin
    while place < end:
        if text[place] == "(":
            place = closing(text, place)
        elif text[place] == "{":
            close = closing(text, place)
            # Braces of an initialiser are followed by more of the same declaration.
            after = re.match(r"\s*[;,=]", text[close + 1 : end])
            if not after or re.match(r"\s*(class|struct|enum|union)\b", text[start:place]):
                yield start, close + 1, place
                place = close + (1 + len(after.group()) if after else 0)
                start = place + 1 if not after else place
                place = start
                continue
            place = close
        elif text[place] == ";":
            yield start, place + 1, None
            start = place + 1
        elif text[place] == ":" and re.search(r"\b(public|private|protected)\s*$", text[start:place]):
            start = place + 1
        place += 1


def without_arguments_of_templates(text):
    while (shorter := re.sub(r"<[^<>()]*(\([^()]*\)[^<>()]*)*>", "", text)) != text:
        text = shorter
    return text


def declares_function(text):
    """Whether a declaration without a body is one of a function that is defined elsewhere."""
    text = re.sub(r"\balignas\([^)]*\)", "", re.sub(r"operator\s*[^\s\w(]+\s*\(", "operator_(", text))
    text = without_arguments_of_templates(re.sub(r"->|\{[^{}]*\}", "", text))
    if re.search(r"=\s*(default|delete)\s*;", text) or "(*" in text:
        return False
    head = re.split(r"=(?![^(]*\))", text, maxsplit=1)[0]
    return re.search(r"[\w>]\s*\(", head) is not None


def needs_mark(text, begin, end):
    """Whether a class, given by the inside of its braces, has members that are defined elsewhere, or virtual ones."""
    for first, last, body in statements(text, begin, end):
        member = text[first : body or last].strip()
        if re.match(r"virtual\b", member) or re.search(r"\boverride\b", member):
            return True
        nested = re.match(r"(template\s*<[^{;]*>\s*)?(class|struct|union)\b", member)
        if body is not None:
            if nested and not nested.group(1) and needs_mark(text, body + 1, last - 1):
                return True
            continue
        if EXEMPT.match(member) or nested:
            continue
        if declares_function(member):
            return True
    return False


def unmarked(source):
    """(place, name) of the declarations that lack the mark; the place is where it is to be put in."""
    text = blanked(source)
    found, scopes = [], [(0, len(text))]
    while scopes:
        begin, end = scopes.pop()
        for first, last, body in statements(text, begin, end):
            first += len(text[first:last]) - len(text[first:last].lstrip())
            declaration = text[first:last]
            if re.match(r"(inline\s+)?namespace\b", declaration) and body is not None:
                scopes.append((body + 1, last - 1))
            elif match := CLASS.match(declaration):
                if MARK not in match.group() and needs_mark(text, body + 1, last - 1):
                    found.append((first + match.start("name"), match.group("name")))
            elif body is None and not EXEMPT.match(declaration):
                head = re.match(r"(template\s*<[^;{]*?>\s*(?=[\w\[]))?(\[\[\w+\]\]\s*)?", declaration)
                function = declaration[head.end() :]
                if EXEMPT.match(function) or function.startswith(MARK) or not declares_function(function):
                    continue
                name = re.search(r"(\w+|operator\W+)\s*\(", without_arguments_of_templates(function)).group(1)
                # A template is defined in its header, unless it is instantiated elsewhere.
                if not head.group(1) or re.search(rf"\bextern template [^;]*\b{name}\(", text):
                    found.append((first + head.end(), name))
    return sorted(found)


def fixed(source):
    for place, _ in reversed(unmarked(source)):
        source = source[:place] + MARK + " " + source[place:]
    if MARK in source and INCLUDE not in source:
        lines = source.split("\n")
        own = [i for i, line in enumerate(lines) if line.startswith('#include "')]
        angle = [i for i, line in enumerate(lines) if line.startswith("#include <")]
        if own:
            lines.insert(next((i for i in own if lines[i] > INCLUDE), own[-1] + 1), INCLUDE)
        elif angle:
            lines[angle[-1] + 1 : angle[-1] + 1] = ["", INCLUDE]
        else:
            place = next(i for i, line in enumerate(lines) if line.startswith("namespace"))
            lines[place:place] = [INCLUDE, ""]
        source = "\n".join(lines)
    return source


def main(arguments):
    fix = "--fix" in arguments
    root = pathlib.Path(arguments[-1])
    complaints, headers = [], 0
    for file in sorted((root / "heed").rglob("*.h")):
        path = file.relative_to(root).as_posix()
        if not public_headers.is_public(path) or path == "heed/base/export.h":
            continue
        headers += 1
        source = file.read_text()
        if fix:
            if fixed(source) != source:
                file.write_text(fixed(source))
            continue
        for place, name in unmarked(source):
            line = source.count("\n", 0, place) + 1
            complaints.append(f"{path}:{line}: {name} is not marked {MARK}: a program outside could not link with it")
        if MARK in source and INCLUDE not in source:
            complaints.append(f"{path}:1: {MARK} without {INCLUDE}")
    print("\n".join(complaints) if complaints else f"{headers} public headers: what they declare is exported")
    return 1 if complaints or not headers else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
