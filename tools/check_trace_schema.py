# SPDX-License-Identifier: Apache-2.0
"""Traces are what docs/trace.schema.json says: check_trace_schema.py <the program trace_samples>.

The program writes a trace of every family, each is validated, and so are some that have been broken, which must be
refused. Every field that a trace has is in the schema: one that is not would be one that nobody documented.
Exit code 77: there is no python3-jsonschema here.
"""
import copy
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import jsonschema
except ImportError:
    print("there is no python3-jsonschema: traces are not validated")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent
schema = json.loads((ROOT / "docs/trace.schema.json").read_text())
# The newest draft that the package knows; Debian 12's knows the one that the schema names.
Validator = jsonschema.validators.validator_for(schema)
Validator.check_schema(schema)
validator = Validator(schema)


def closed(part):
    """The same schema, in which an object has no other fields than those that are named."""
    if isinstance(part, list):
        return [closed(one) for one in part]
    if not isinstance(part, dict):
        return part
    part = {key: closed(value) for key, value in part.items()}
    if part.get("type") == "object" and "additionalProperties" not in part:
        part["additionalProperties"] = False
    return part


def broken_ones(trace):
    """A trace with one thing wrong in each, and what it is."""

    def change(what, edit):
        other = copy.deepcopy(trace)
        edit(other)
        return what, other

    first = next(iter(trace["tensors"]))
    yield change("another major version", lambda t: t.update(version="2.0"))
    yield change("no tokens", lambda t: t["sequences"][0].pop("tokens"))
    yield change("an unknown score", lambda t: t["attn"][0]["score"].update(fn="cosine"))
    yield change("a row that is no number", lambda t: t["output"]["steps"][0].update(row="0"))
    yield change("data that is no base64", lambda t: t["tensors"][first].update(data="***"))
    yield change("an unknown dtype", lambda t: t["tensors"][first].update(dtype="f8"))


def main():
    strict = Validator(closed(schema))
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.argv[1], folder], check=True)
        paths = sorted(pathlib.Path(folder).glob("*.json"))
        traces = {path.name: json.loads(path.read_text(), parse_constant=lambda name: sys.exit(f"{path.name}: {name}"))
                  for path in paths}
    complaints = []
    for name, trace in traces.items():
        for error in strict.iter_errors(trace):
            complaints.append(f"{name}: {'.'.join(map(str, error.absolute_path))}: {error.message[:200]}")
    for what, broken in broken_ones(traces["transformer.json"]):
        if validator.is_valid(broken):
            complaints.append(f"the schema takes a trace with {what}")
    if not traces:
        complaints.append("no traces, expected some")
    print("\n".join(complaints) if complaints else f"{len(traces)} traces are what the schema says")
    sys.exit(1 if complaints else 0)


main()
