# SPDX-License-Identifier: Apache-2.0
"""Reads a heed model folder: its options, and its parameters as numpy arrays."""
import json
import pathlib
import struct

import numpy as np

DTYPES = {"F32": np.float32, "F16": np.float16, "F64": np.float64}


def read_config(folder):
    return json.loads((pathlib.Path(folder) / "config.json").read_text())


def read_tensors(folder):
    """All parameters by name, in f32."""
    path = pathlib.Path(folder) / "model.safetensors"
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name == "__metadata__":
            continue
        if entry["dtype"] not in DTYPES:
            raise SystemExit(f"{path}: {name} has dtype {entry['dtype']}, expected one of {', '.join(DTYPES)}")
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        values = np.frombuffer(data[begin:end], dtype=DTYPES[entry["dtype"]])
        tensors[name] = values.reshape(entry["shape"]).astype(np.float32)
    return tensors
