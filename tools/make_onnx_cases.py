# SPDX-License-Identifier: Apache-2.0
"""ONNX's node cases as folders that the conformance tests read: make_onnx_cases.py <folder to make>.

It needs onnx and numpy from PyPI, which nothing else here does:

  python3 -m venv onnx-env && onnx-env/bin/pip install onnx==1.23.0 numpy
  onnx-env/bin/python tools/make_onnx_cases.py data/onnx-cases
  HEED_DATA=$PWD/data ./dev test

A case becomes a folder with case.json (the node, its attributes and its tensors) and an .npy file a tensor. onnx 1.22.0
has the same cases but for 12 of the 76 of Attention that the tests ask for; earlier releases expect other values. The
cases are ONNX's, under the Apache License 2.0.
"""
import json
import pathlib
import sys
import warnings

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases
from onnx.reference import ReferenceEvaluator

OPERATORS = {
    "Attention",
    "GRU",
    "Gelu",
    "LSTM",
    "LayerNormalization",
    "LogSoftmax",
    "RMSNormalization",
    "RNN",
    "RotaryEmbedding",
    "Softmax",
}
# Recurrences here run forward, one direction.
UNWANTED_ATTRIBUTES = {"direction"}
ATTENTION_CASES = 76

FLOATS = {TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.FLOAT}


def array_of(value):
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)


def wanted(case):
    """Cases of one node that is an operator of ours. The others are the same, expanded to simpler nodes."""
    nodes = case.model.graph.node
    if len(nodes) != 1 or nodes[0].op_type not in OPERATORS or case.name.endswith("_expanded"):
        return False
    return not UNWANTED_ATTRIBUTES & {attribute.name for attribute in nodes[0].attribute}


def in_double(model, inputs):
    """What the reference gives if every floating-point tensor is a double."""
    double = onnx.ModelProto()
    double.CopyFrom(model)
    for value in [*double.graph.input, *double.graph.output]:
        if value.type.tensor_type.elem_type in FLOATS:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
    feed = {}
    for value, array in zip(model.graph.input, inputs):
        is_float = value.type.tensor_type.elem_type in FLOATS
        feed[value.name] = array.astype(np.float64) if is_float else array
    return ReferenceEvaluator(double).run(None, feed)


def outputs_of(case, inputs, given):
    """The outputs of Attention are made anew in double and rounded once: releases of onnx and numpy differ in how they
    round on the way."""
    if case.model.graph.node[0].op_type != "Attention":
        return given
    return [array.astype(old.dtype) for array, old in zip(in_double(case.model, inputs), given, strict=True)]


def value_entry(value):
    tensor = value.type.tensor_type
    return {
        "name": value.name,
        "dtype": str(helper.tensor_dtype_to_np_dtype(tensor.elem_type)),
        "shape": [dimension.dim_value for dimension in tensor.shape.dim],
    }


def write_tensors(folder, kind, values, arrays):
    entries = []
    for i, (value, array) in enumerate(zip(values, arrays, strict=True)):
        # numpy has no bfloat16 of its own; float32 holds it exactly.
        stored = array.astype(np.float32) if array.dtype.name == "bfloat16" else array
        file = f"set0_{kind}{i}.npy"
        np.save(folder / file, np.ascontiguousarray(stored).reshape(stored.shape))
        entries.append(
            {
                "name": value.name,
                "tensor_name": value.name,
                "dtype": array.dtype.name,
                "stored": stored.dtype.name,
                "shape": list(array.shape),
                "file": file,
            }
        )
    return entries


def attribute_value(attribute):
    value = helper.get_attribute_value(attribute)
    return value.decode() if isinstance(value, bytes) else value


def write_case(case, folder):
    (data_set,) = case.data_sets
    inputs, given = ([array_of(value) for value in values] for values in data_set)
    graph, (node,) = case.model.graph, case.model.graph.node
    if graph.initializer:
        raise ValueError(f"{case.name} has initializers, expected none")
    folder.mkdir(parents=True, exist_ok=True)
    description = {
        "case": case.name,
        "ir": case.model.ir_version,
        "opset": {entry.domain or "ai.onnx": entry.version for entry in case.model.opset_import},
        "nodes": [
            {
                "op": node.op_type,
                "domain": node.domain,
                "inputs": list(node.input),
                "outputs": list(node.output),
                "attributes": {a.name: attribute_value(a) for a in sorted(node.attribute, key=lambda a: a.name)},
            }
        ],
        "inputs": [value_entry(value) for value in graph.input],
        "outputs": [value_entry(value) for value in graph.output],
        "initializers": [],
        "sets": [
            {
                "inputs": write_tensors(folder, "input", graph.input, inputs),
                "outputs": write_tensors(folder, "output", graph.output, outputs_of(case, inputs, given)),
            }
        ],
    }
    (folder / "case.json").write_text(json.dumps(description, indent=1))


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    # The cases are made by code that overflows and divides by zero on purpose.
    warnings.simplefilter("ignore", RuntimeWarning)
    cases = [case for case in collect_testcases(None) if wanted(case)]
    for case in cases:
        write_case(case, root / case.name)
    attention = sum(case.name.startswith("test_attention_") for case in cases)
    print(f"onnx {onnx.__version__}: {len(cases)} cases in {root}, {attention} of them of Attention")
    if attention < ATTENTION_CASES:
        sys.exit(f"make_onnx_cases: expected at least {ATTENTION_CASES} cases of Attention: onnx 1.23.0 has them")


if __name__ == "__main__":
    main()
