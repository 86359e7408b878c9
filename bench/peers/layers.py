#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Layers: heed against PyTorch and ONNX Runtime, in the same rounds.

  bench/peers/setup.sh /tmp/peers
  /tmp/peers/bin/python bench/peers/layers.py

The rows are those of `heed bench layers` that peers have, too: a Transformer's encoder layer (as the base model's: norms
after, ReLU), LSTM and GRU, and Bahdanau's decoder, a GRU that looks at the source before each step (in PyTorch a loop
over cells). Forward alone is inference; forward and backward gives the gradients of the input and of all parameters, with
dropout in the encoder layer. ONNX Runtime has no backward pass. Its layers have PyTorch's weights, and the outputs of both are
compared; those of heed are not read here: tests/parity and tests/conformance compare them.
"""
import compare
import numpy as np
import onnx_graphs
import onnxruntime
import torch
import torch_models
from torch import nn

TOLERANCE = 1e-3  # outputs are of size 1, after several products of 512 to 2048 terms in f32
HEADS = 8


def rows():
    encoder = dict(kind="encoder", B=16, T=64, width=512, inner=2048)
    found = [
        {"name": "encoder forward B=16 T=64 width=512 inner=2048 f32", "backward": False, **encoder},
        {"name": "encoder forward_backward B=16 T=64 width=512 inner=2048 f32, dropout 0.1", "backward": True, **encoder},
    ]
    for kind in ("lstm", "gru"):
        for step in ("forward", "forward_backward"):
            name = f"{kind} {step} T=64 B=32 I=512 H=512 f32"
            found.append({"name": name, "backward": step != "forward", "kind": kind, "B": 32, "T": 64, "width": 512})
    found.append(
        {"name": "lstm forward T=64 B=1 I=512 H=512 f32", "backward": False, "kind": "lstm", "B": 1, "T": 64, "width": 512}
    )
    for step in ("forward", "forward_backward"):
        name = f"attentive {step} B=32 T=32 S=32 H=512 f32, GRU, additive score"
        found.append({"name": name, "backward": step != "forward", "kind": "attentive", "B": 32, "T": 32, "width": 512})
    return found


def make_layer(row):
    """The layer, and what it is called with."""
    torch.manual_seed(1)  # fixed seed: the same numbers for all peers
    B, T, width = row["B"], row["T"], row["width"]
    x = torch.randn(B, T, width)
    if row["kind"] == "encoder":
        layer = nn.TransformerEncoderLayer(width, HEADS, row["inner"], dropout=0.1, batch_first=True)
        return torch_models.without_attention_dropout(layer), (x,)
    if row["kind"] == "attentive":
        return torch_models.AttentiveDecoder(width), (x, torch.randn(B, T, width), torch.zeros(B, width))
    return {"lstm": nn.LSTM, "gru": nn.GRU}[row["kind"]](width, width, batch_first=True), (x,)


def first(result):
    return result if isinstance(result, torch.Tensor) else result[0]


def pytorch(row, layer, given):
    if not row["backward"]:
        layer.eval()

        def forward():
            with torch.inference_mode():
                return first(layer(*given))

        return forward
    layer.train()
    given = [x.requires_grad_() for x in given]
    d_out = torch.randn(given[0].shape)

    def forward_backward():  # adds to the gradients, as heed does
        first(layer(*given)).backward(d_out)

    return forward_backward


def onnx_sessions(row, layer, x, threads):
    if row["kind"] == "encoder":
        return {
            "Attention": onnx_graphs.encoder_layer(layer, x, threads, own_operator=False),
            "MultiHeadAttention": onnx_graphs.encoder_layer(layer, x, threads, own_operator=True),
        }
    if row["kind"] == "attentive":
        return {}
    return {row["kind"].upper(): onnx_graphs.recurrent(layer, x, threads)}


def check(row, expected, sessions):
    """All ways compute the same, or nothing is measured."""
    for way, session in sessions.items():
        session.run()
        out = session.output if session.output.ndim == 3 else session.output[:, 0].swapaxes(0, 1)
        difference = float(np.abs(out - expected.numpy()).max())
        if not difference < TOLERANCE:
            raise SystemExit(
                f"{row['name']}: {way} of ONNX Runtime and PyTorch differ by {difference:.2g}, expected < {TOLERANCE}"
            )


def peers_of(row, threads):
    layer, given = make_layer(row)
    call = pytorch(row, layer, given)
    peers = {"PyTorch": {"eager": call}}
    if row["backward"]:
        return peers
    sessions = onnx_sessions(row, layer, given[0], threads)
    check(row, call(), sessions)
    if sessions:
        peers["ONNX Runtime"] = {way: session.run for way, session in sessions.items()}
    return peers


def main():
    options = compare.arguments(__doc__, "layers.json", rounds=9).parse_args()
    heed = compare.Heed(options.heed)
    chosen = compare.selected(rows(), options.filter)
    versions = {"heed": heed.version, "torch": torch.__version__, "onnxruntime": onnxruntime.__version__}
    report = compare.new_report(options, versions)
    for threads in options.threads:
        torch.set_num_threads(threads)
        for row in chosen:
            command = ("layers", "--filter", row["name"], "--rounds", compare.SAMPLES, "--threads", threads)
            facts, figures = compare.measure(
                options.rounds, threads, lambda: heed.one_row(*command), peers_of(row, threads)
            )
            compare.add_row(report, facts[0], {"name": row["name"], "threads": threads, **figures})
    compare.write(report, options.out)


if __name__ == "__main__":
    main()
