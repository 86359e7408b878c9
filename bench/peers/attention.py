#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attention: heed against PyTorch (scaled_dot_product_attention) and ONNX Runtime, in the same rounds.

  bench/peers/setup.sh /tmp/peers
  /tmp/peers/bin/python bench/peers/attention.py

Shapes and masks are those of `heed bench attention`; all of it in f32. ONNX Runtime has no backward pass; of its two
operators, Attention and MultiHeadAttention, the faster one counts. The outputs of PyTorch and ONNX Runtime are
compared in every row. Those of heed are not read here: tests/parity and tests/conformance compare them.
"""
import compare
import numpy as np
import onnx_graphs
import onnxruntime
import torch
from torch.nn.functional import scaled_dot_product_attention

SHAPES = [  # B, H, T, D: as in bench/grid.cc
    (1, 8, 32, 64),
    (64, 8, 32, 64),
    (16, 8, 64, 64),
    (1, 8, 128, 64),
    (1, 8, 512, 64),
    (1, 8, 2048, 64),
    (1, 1, 16384, 64),
    (1, 8, 512, 32),
    (1, 8, 512, 128),
]
DECODE = (4096, 65536)  # keys
SLOW_FLOPS = 4e9
TOLERANCE = 1e-4  # numbers are of size 1; both accumulate in f32


def rows():
    found = []
    for B, H, T, D in SHAPES:
        for mask in ("none", "causal"):
            for step in ("forward", "forward_backward"):
                name = f"{step} BHTD {mask} {B},{H},{T},{D}"
                found.append({"name": name, "pass": step, "shape": (B, H, T, T, D), "causal": mask == "causal"})
    for S in DECODE:
        found.append({"name": f"decode BHTD none 1,8,1x{S},64", "pass": "decode", "shape": (1, 8, 1, S, 64), "causal": False})
    return found


def inputs(row):
    B, H, T, S, D = row["shape"]
    torch.manual_seed(1)  # fixed seed: the same numbers for all peers
    return torch.randn(B, H, T, D), torch.randn(B, H, S, D), torch.randn(B, H, S, D)


def pytorch(row):
    q, k, v = inputs(row)
    causal = row["causal"]
    if row["pass"] != "forward_backward":

        def forward():
            with torch.inference_mode():
                return scaled_dot_product_attention(q, k, v, is_causal=causal)

        return forward
    q, k, v = (x.requires_grad_() for x in (q, k, v))
    d_out = torch.randn(q.shape)

    def forward_backward():
        return torch.autograd.grad(scaled_dot_product_attention(q, k, v, is_causal=causal), (q, k, v), d_out)

    return forward_backward


def onnx_sessions(row, threads):
    q, k, v = (x.numpy() for x in inputs(row))
    return {
        "Attention": onnx_graphs.attention(q, k, v, row["causal"], threads),
        "MultiHeadAttention": onnx_graphs.multi_head_attention(q, k, v, row["causal"], threads),
    }


def check(row, expected, sessions):
    """All ways compute the same, or nothing is measured."""
    B, H, T, _, D = row["shape"]
    for way, session in sessions.items():
        session.run()
        out = session.output
        if out.ndim == 3:
            out = out.reshape(B, T, H, D).transpose(0, 2, 1, 3)
        difference = float(np.abs(out - expected.numpy()).max())
        if not difference < TOLERANCE:
            raise SystemExit(
                f"{row['name']}: {way} of ONNX Runtime and PyTorch differ by {difference:.2g}, expected < {TOLERANCE}"
            )


def peers_of(row, threads):
    call = pytorch(row)
    peers = {"PyTorch": {"eager": call}}
    if row["pass"] == "forward_backward":
        return peers
    sessions = onnx_sessions(row, threads)
    check(row, call(), sessions)
    peers["ONNX Runtime"] = {way: session.run for way, session in sessions.items()}
    return peers


def main():
    options = compare.arguments(__doc__, "attention.json", rounds=9).parse_args()
    heed = compare.Heed(options.heed)
    chosen = compare.selected(rows(), options.filter)
    versions = {"heed": heed.version, "torch": torch.__version__, "onnxruntime": onnxruntime.__version__}
    report = compare.new_report(options, versions)
    for threads in options.threads:
        torch.set_num_threads(threads)
        for row in chosen:
            B, H, T, S, D = row["shape"]
            samples = 1 if 4 * B * H * T * S * D > SLOW_FLOPS else compare.SAMPLES
            command = ("attention", "--filter", row["name"], "--rounds", samples, "--threads", threads)
            facts, figures = compare.measure(
                options.rounds, threads, lambda: heed.one_row(*command), peers_of(row, threads)
            )
            kept = {"name": row["name"], "pass": row["pass"], "threads": threads}
            compare.add_row(report, facts[0], {**kept, **figures})
    compare.write(report, options.out)


if __name__ == "__main__":
    main()
