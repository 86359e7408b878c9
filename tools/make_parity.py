# SPDX-License-Identifier: Apache-2.0
"""Writes what PyTorch computes for the same layers: make_parity.py <folder>.

The files are committed (tests/parity/data), so that the tests need no PyTorch. Parameters and inputs are numbers of f32;
PyTorch computes in f64, and the results are rounded to f32. Names of parameters are those that heed gives them.
Made with PyTorch 1.13.1.
"""
import json
import pathlib
import struct
import sys

import torch
from torch import nn

B, T, S, WIDTH, HEADS, INNER, SOURCE_WIDTH = 2, 5, 7, 8, 2, 12, 6
LENGTHS = [4, 7]  # of the source's rows
CODES = {torch.float32: "F32", torch.int32: "I32"}


def write(path, tensors):
    """The safetensors format: a length, a JSON header, the bytes."""
    header, data = {}, b""
    for name in sorted(tensors):
        tensor = tensors[name].detach()
        tensor = (tensor.float() if tensor.is_floating_point() else tensor.int()).contiguous()
        raw = tensor.numpy().tobytes()
        header[name] = {
            "dtype": CODES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def draw(*shape, deviation=1.0):
    """Numbers of f32, in f64."""
    return (deviation * torch.randn(*shape)).float().double()


def drawn_parameters(module):
    module = module.double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(draw(*parameter.shape, deviation=0.4))
    return module


def attention_names(prefix, attention):
    """(heed's name, PyTorch's tensor, rows of it) of a MultiheadAttention's parameters."""
    width = attention.embed_dim
    for i, letter in enumerate("qkv"):
        rows = slice(i * width, (i + 1) * width)
        if attention.in_proj_weight is not None:
            yield f"{prefix}{letter}.weight", attention.in_proj_weight, rows
        else:
            yield f"{prefix}{letter}.weight", getattr(attention, f"{letter}_proj_weight"), slice(None)
        yield f"{prefix}{letter}.bias", attention.in_proj_bias, rows
    yield f"{prefix}out.weight", attention.out_proj.weight, slice(None)
    yield f"{prefix}out.bias", attention.out_proj.bias, slice(None)


def layer_names(layer, norms):
    yield from attention_names("self.", layer.self_attn)
    if hasattr(layer, "multihead_attn"):
        yield from attention_names("cross.", layer.multihead_attn)
    modules = {"feed_forward.first": layer.linear1, "feed_forward.second": layer.linear2}
    modules.update({name: getattr(layer, f"norm{i + 1}") for i, name in enumerate(norms)})
    for name, module in modules.items():
        yield f"{name}.weight", module.weight, slice(None)
        yield f"{name}.bias", module.bias, slice(None)


def record(path, names, inputs, run):
    """One pass there and back: inputs, parameters, the result, and the gradients of everything."""
    for tensor in inputs.values():
        tensor.requires_grad_()
    out = run()
    d_out = draw(*out.shape)
    (out * d_out).sum().backward()
    tensors = {"out": out, "d_out": d_out, "lengths": torch.tensor(LENGTHS)}
    for name, tensor in inputs.items():
        tensors[f"input.{name}"] = tensor
        tensors[f"gradient.input.{name}"] = tensor.grad
    for name, tensor, rows in names:
        tensors[f"value.{name}"] = tensor[rows]
        tensors[f"gradient.{name}"] = tensor.grad[rows]
    write(path, tensors)


def hidden_padding():
    return torch.arange(S)[None, :] >= torch.tensor(LENGTHS)[:, None]


def hidden_future():
    return torch.ones(T, T, dtype=torch.bool).triu(1)


def make_attention(folder):
    attention = drawn_parameters(nn.MultiheadAttention(WIDTH, HEADS, batch_first=True))
    x = draw(B, T, WIDTH)
    record(folder / "attention_masked.safetensors", attention_names("", attention), {"x": x},
           lambda: attention(x, x, x, attn_mask=hidden_future())[0])

    attention = drawn_parameters(
        nn.MultiheadAttention(WIDTH, HEADS, kdim=SOURCE_WIDTH, vdim=SOURCE_WIDTH, batch_first=True))
    y, source = draw(B, T, WIDTH), draw(B, S, SOURCE_WIDTH)
    record(folder / "attention_cross.safetensors", attention_names("", attention), {"x": y, "source": source},
           lambda: attention(y, source, source, key_padding_mask=hidden_padding())[0])


def make_layers(folder):
    for norm_first, order in ((True, "before"), (False, "after")):
        options = {"dim_feedforward": INNER, "dropout": 0.0, "batch_first": True, "norm_first": norm_first}
        encoder = drawn_parameters(nn.TransformerEncoderLayer(WIDTH, HEADS, **options))
        x = draw(B, S, WIDTH)
        record(folder / f"encoder_layer_{order}.safetensors", layer_names(encoder, ["norm_self", "norm_feed_forward"]),
               {"x": x}, lambda: encoder(x, src_key_padding_mask=hidden_padding()))

        options["activation"] = "gelu"
        decoder = drawn_parameters(nn.TransformerDecoderLayer(WIDTH, HEADS, **options))
        y, memory = draw(B, T, WIDTH), draw(B, S, WIDTH)
        record(folder / f"decoder_layer_{order}.safetensors",
               layer_names(decoder, ["norm_self", "norm_cross", "norm_feed_forward"]), {"x": y, "source": memory},
               lambda: decoder(y, memory, tgt_mask=hidden_future(), memory_key_padding_mask=hidden_padding()))


def recurrent_names(module):
    """(heed's name, PyTorch's tensor, rows of it) of an LSTM's or a GRU's parameters."""
    for layer in range(module.num_layers):
        for direction, suffix in (("forward", ""), ("backward", "_reverse")):
            for name in ("w_ih", "w_hh", "b_ih", "b_hh"):
                kind = name.replace("w_", "weight_").replace("b_", "bias_")
                yield f"layers.{layer}.{direction}.{name}", getattr(module, f"{kind}_l{layer}{suffix}"), slice(None)


def make_recurrent(folder):
    """Two layers, two directions, lengths. The result is all states, then the last ones of each layer."""
    for name, kind in (("lstm", nn.LSTM), ("gru", nn.GRU)):
        module = drawn_parameters(kind(SOURCE_WIDTH, WIDTH // 2, 2, batch_first=True, bidirectional=True))
        x = draw(B, S, SOURCE_WIDTH)

        def run():
            packed = nn.utils.rnn.pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False)
            states, last = module(packed)
            states = nn.utils.rnn.pad_packed_sequence(states, batch_first=True, total_length=S)[0]
            last = torch.stack(last if name == "lstm" else (last,))  # [h and c, layers directions, B, width]
            last = last.view(-1, 2, 2, B, WIDTH // 2).permute(3, 1, 0, 2, 4)  # [B, layers, h and c, directions, width]
            return torch.cat((states.reshape(B, -1), last.reshape(B, -1)), 1)

        record(folder / f"{name}.safetensors", recurrent_names(module), {"x": x}, run)


def make_cross_entropy(folder):
    tensors = {"logits": draw(9, 11, deviation=3).requires_grad_(),
               "targets": torch.tensor([3, -100, 0, 10, 7, -100, 7, 1, 5])}
    for name, smoothing in (("plain", 0.0), ("smoothed", 0.1)):
        tensors["logits"].grad = None
        loss = nn.functional.cross_entropy(tensors["logits"], tensors["targets"], label_smoothing=smoothing,
                                           ignore_index=-100)
        loss.backward()
        tensors[f"loss.{name}"] = loss
        tensors[f"gradient.{name}"] = tensors["logits"].grad
    write(folder / "cross_entropy.safetensors", tensors)


def make_adamw(folder):
    steps, n = 10, 40
    begin, gradients = draw(n), draw(steps, n)
    tensors = {"begin": begin, "gradients": gradients}
    for name, optimizer in (("adamw", torch.optim.AdamW), ("adam", torch.optim.Adam)):
        values = begin.clone().requires_grad_()
        stepping = optimizer([values], lr=0.01, betas=(0.9, 0.98), eps=1e-8, weight_decay=0.1)
        after = []
        for gradient in gradients:
            values.grad = gradient.clone()
            stepping.step()
            after.append(values.detach().clone())
        tensors[f"after.{name}"] = torch.stack(after)
    write(folder / "adamw.safetensors", tensors)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for seed, make in enumerate((make_attention, make_layers, make_cross_entropy, make_adamw, make_recurrent)):
        torch.manual_seed(seed)
        make(folder)


if __name__ == "__main__":
    main()
