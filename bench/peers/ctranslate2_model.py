# SPDX-License-Identifier: Apache-2.0
"""A heed model folder as a model of CTranslate2: same weights, same positions, same special tokens.

The tokens of the result are the ids of heed, as text ("17"), so that both are given the same ids whatever the tokenizer.
For Transformers with encoder and decoder, and sinusoidal positions; what else a folder may hold is an error.
"""
import pathlib

import ctranslate2
import heed_folder
import numpy as np

PAD, BEGIN, END, UNKNOWN = "0", "1", "2", "3"  # heed/text/tokenizer.h

ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "gelu_tanh": "GELUTanh", "silu": "SWISH"}


def sinusoids(options):
    """[max_length, width]: heed/nn/layers.cc."""
    width = options["width"]
    positions = options["first_position"] + np.arange(options["max_length"], dtype=np.float64)
    angles = positions[:, None] * 10000.0 ** (-2.0 * np.arange((width + 1) // 2) / width)[None, :]
    if options["sinusoid_layout"] == "halves":
        return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)[:, :width].astype(np.float32)
    return np.stack([np.sin(angles), np.cos(angles)], axis=2).reshape(len(positions), -1)[:, :width].astype(np.float32)


def check(options):
    """CTranslate2 knows more than this, but what is not converted here must not be passed over in silence."""
    expected = {
        "kind": ["encoder-decoder"],
        "positions": ["sinusoid"],
        "activation": list(ACTIVATIONS),
        "embedding_norm": [False],
        "rms": [False],
        "gated": [False],
        "bias": [True],
        "token_types": [0],
        "head_width": [0, options["width"] // options["heads"]],
        "kv_heads": [0, options["heads"]],
        "embedding_scale": [0, 1],
    }
    for name, values in expected.items():
        if options[name] not in values:
            raise SystemExit(f"config.json: {name} is {options[name]!r}, expected {' or '.join(map(repr, values))}")


class Converter:
    def __init__(self, folder):
        config = heed_folder.read_config(folder)
        if config["family"] != "transformer":
            raise SystemExit(f"{folder}: the family is {config['family']}, expected transformer")
        self.options = config["transformer"]
        check(self.options)
        self.tensors = heed_folder.read_tensors(folder)

    def linear(self, spec, *names):
        """Several projections of one input stand in one matrix, one under the other."""
        spec.weight = np.concatenate([self.tensors[name + ".weight"] for name in names])
        spec.bias = np.concatenate([self.tensors[name + ".bias"] for name in names])

    def norm(self, spec, name):
        spec.gamma = self.tensors[name + ".weight"]
        spec.beta = self.tensors[name + ".bias"]

    def layer(self, spec, path, with_cross):
        self.linear(spec.self_attention.linear[0], *(f"{path}.self.{part}" for part in "qkv"))
        self.linear(spec.self_attention.linear[1], f"{path}.self.out")
        self.norm(spec.self_attention.layer_norm, f"{path}.norm_self")
        if with_cross:
            self.linear(spec.attention.linear[0], f"{path}.cross.q")
            self.linear(spec.attention.linear[1], f"{path}.cross.k", f"{path}.cross.v")
            self.linear(spec.attention.linear[2], f"{path}.cross.out")
            self.norm(spec.attention.layer_norm, f"{path}.norm_cross")
        self.linear(spec.ffn.linear_0, f"{path}.feed_forward.first")
        self.linear(spec.ffn.linear_1, f"{path}.feed_forward.second")
        self.norm(spec.ffn.layer_norm, f"{path}.norm_feed_forward")

    def spec(self):
        o, tensors = self.options, self.tensors
        spec = ctranslate2.specs.TransformerSpec.from_config(
            (o["encoder_layers"], o["decoder_layers"]),
            o["heads"],
            pre_norm=o["norm"] == "before",
            activation=getattr(ctranslate2.specs.Activation, ACTIVATIONS[o["activation"]]),
        )
        source = tensors.get("source_embedding.weight", tensors["embedding.weight"])
        spec.encoder.embeddings[0].weight = source
        spec.decoder.embeddings.weight = tensors["embedding.weight"]
        spec.decoder.projection.weight = tensors["embedding.weight" if o["tied"] else "output.weight"]
        if "output.bias" in tensors:
            spec.decoder.projection.bias = tensors["output.bias"]
        for side, name in ((spec.encoder, "encoder"), (spec.decoder, "decoder")):
            side.scale_embeddings = o["embedding_scale"] == 0
            side.position_encodings.encodings = sinusoids(o)
            if o["norm"] == "before":
                self.norm(side.layer_norm, name + "_norm")
            for i, layer in enumerate(side.layer):
                self.layer(layer, f"{name}.{i}", side is spec.decoder)
        spec.register_source_vocabulary([str(i) for i in range(len(source))])
        spec.register_target_vocabulary([str(i) for i in range(len(tensors["embedding.weight"]))])
        spec.config.layer_norm_epsilon = o["norm_eps"]
        spec.config.bos_token = spec.config.decoder_start_token = BEGIN
        spec.config.eos_token, spec.config.unk_token = END, UNKNOWN
        spec.config.add_source_eos = True  # as heed/data/batch.cc
        return spec


def convert(folder, destination):
    """Writes the model of a heed folder to a folder for ctranslate2.Translator, in f32."""
    spec = Converter(folder).spec()
    spec.validate()
    spec.optimize()
    pathlib.Path(destination).mkdir(parents=True, exist_ok=True)
    spec.save(str(destination))
