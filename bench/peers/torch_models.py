# SPDX-License-Identifier: Apache-2.0
"""heed's models in PyTorch, as people write them there, over its own layers; they take heed's parameters by name.

What is trained is the same: shared and tied embeddings, sinusoids, dropout at the same places and not on attention weights
(as heed's presets have it). The recurrent decoder is a loop over cells, with the keys projected once.
"""
import math

import torch
from torch import nn


def sinusoids(length, width):
    angles = torch.arange(length)[:, None] * 10000.0 ** (-torch.arange(0, width, 2) / width)[None, :]
    return torch.stack([angles.sin(), angles.cos()], 2).reshape(length, width)


def without_attention_dropout(layer):
    """nn.Transformer's layers drop attention weights, too; heed's presets do not."""
    for module in layer.modules():
        if isinstance(module, nn.MultiheadAttention):
            module.dropout = 0.0
    return layer


class Transformer(nn.Module):
    def __init__(self, options, dropout, longest):
        super().__init__()
        width = options["width"]
        before = options["norm"] == "before"
        sizes = dict(d_model=width, nhead=options["heads"], dim_feedforward=options["inner"], dropout=dropout)
        shared = dict(batch_first=True, norm_first=before, layer_norm_eps=options["norm_eps"])
        self.embedding = nn.Embedding(options["vocabulary"], width)
        self.register_buffer("positions", sinusoids(longest, width))
        self.dropout = nn.Dropout(dropout)
        self.encoder = nn.ModuleList(
            without_attention_dropout(nn.TransformerEncoderLayer(**sizes, **shared))
            for _ in range(options["encoder_layers"])
        )
        self.decoder = nn.ModuleList(
            without_attention_dropout(nn.TransformerDecoderLayer(**sizes, **shared))
            for _ in range(options["decoder_layers"])
        )
        self.encoder_norm = nn.LayerNorm(width, eps=options["norm_eps"]) if before else nn.Identity()
        self.decoder_norm = nn.LayerNorm(width, eps=options["norm_eps"]) if before else nn.Identity()

    def embed(self, ids):
        return self.dropout(self.embedding(ids) * math.sqrt(self.embedding.embedding_dim) + self.positions[: ids.shape[1]])

    def forward(self, source, target):
        memory = self.embed(source)
        for layer in self.encoder:
            memory = layer(memory)
        memory = self.encoder_norm(memory)
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        x = self.embed(target)
        for layer in self.decoder:
            x = layer(x, memory, tgt_mask=mask, tgt_is_causal=True)
        return nn.functional.linear(self.decoder_norm(x), self.embedding.weight)

    @staticmethod
    def _layer(tensors, path, cross):
        """The parameters of one layer, under PyTorch's names."""
        parts = {"self_attn": "self", **({"multihead_attn": "cross"} if cross else {})}
        norms = ["norm_self", "norm_cross", "norm_feed_forward"] if cross else ["norm_self", "norm_feed_forward"]
        names = {f"norm{i + 1}": norm for i, norm in enumerate(norms)}
        names |= {"linear1": "feed_forward.first", "linear2": "feed_forward.second"}
        names |= {f"{theirs}.out_proj": f"{ours}.out" for theirs, ours in parts.items()}
        found = {}
        for kind in ("weight", "bias"):
            found |= {f"{theirs}.{kind}": tensors[f"{path}.{ours}.{kind}"] for theirs, ours in names.items()}
            for theirs, ours in parts.items():
                found[f"{theirs}.in_proj_{kind}"] = torch.cat([tensors[f"{path}.{ours}.{part}.{kind}"] for part in "qkv"])
        return found

    def load_heed(self, tensors):
        self.embedding.load_state_dict({"weight": tensors["embedding.weight"]})
        for side, layers, cross in (("encoder", self.encoder, False), ("decoder", self.decoder, True)):
            for i, layer in enumerate(layers):
                layer.load_state_dict(self._layer(tensors, f"{side}.{i}", cross))
            norm = getattr(self, f"{side}_norm")
            norm.load_state_dict({name: tensors[f"{side}_norm.{name}"] for name in norm.state_dict()})


class AttentiveDecoder(nn.Module):
    """Bahdanau's: the state before a token looks at the source, and what it finds goes into the cell with the token."""

    def __init__(self, width):
        super().__init__()
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width, bias=False)
        self.w = nn.Linear(width, 1, bias=False)
        self.cell = nn.GRUCell(2 * width, width)

    def forward(self, tokens, source, h):
        """tokens [B,T,E], source [B,S,E], h [B,E] -> states and contexts [B,T,E]."""
        keys = self.key(source)
        states, contexts = [], []
        for token in tokens.unbind(1):
            scores = self.w(torch.tanh(self.query(h)[:, None] + keys))
            context = torch.bmm(scores.softmax(1).transpose(1, 2), source).squeeze(1)
            h = self.cell(torch.cat((token, context), 1), h)
            states.append(h)
            contexts.append(context)
        return torch.stack(states, 1), torch.stack(contexts, 1)


RECURRENT = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")  # w_ih ... in heed


class RnnAttention(nn.Module):
    def __init__(self, options, dropout):
        super().__init__()
        width = options["width"]
        self.embedding = nn.Embedding(options["vocabulary"], width)
        self.dropout = nn.Dropout(dropout)
        self.encoder = nn.GRU(width, width // 2, batch_first=True, bidirectional=True)
        self.decoder = AttentiveDecoder(width)
        self.readout = nn.Linear(2 * width, width)
        self.output = nn.Linear(width, options["vocabulary"])

    def embed(self, ids):
        return self.dropout(self.embedding(ids) * math.sqrt(self.embedding.embedding_dim))

    def forward(self, source, target):
        states, last = self.encoder(self.embed(source))
        h, contexts = self.decoder(self.embed(target), states, torch.cat((last[0], last[1]), 1))
        return self.output(self.dropout(torch.tanh(self.readout(torch.cat((h, contexts), 2)))))

    def load_heed(self, tensors):
        names = {"embedding.weight": "embedding.weight", "decoder.key.weight": "cross.key.weight", "decoder.w.weight": "cross.w"}
        for kind in ("weight", "bias"):
            names[f"decoder.query.{kind}"] = f"cross.query.{kind}"
            names |= {f"{part}.{kind}": f"{part}.{kind}" for part in ("readout", "output")}
        for name in RECURRENT:
            ours = name.replace("weight", "w").replace("bias", "b")
            names[f"decoder.cell.{name}"] = f"decoder_top.{ours}"
            names[f"encoder.{name}_l0"] = f"encoder.layers.0.forward.{ours}"
            names[f"encoder.{name}_l0_reverse"] = f"encoder.layers.0.backward.{ours}"
        self.load_state_dict({theirs: tensors[ours] for theirs, ours in names.items()})


def make(config, dropout, longest):
    """The model of a folder's config.json."""
    if config["family"] == "transformer":
        return Transformer(config["transformer"], dropout, longest)
    return RnnAttention(config["rnn_seq2seq"], dropout)
