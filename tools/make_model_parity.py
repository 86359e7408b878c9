# SPDX-License-Identifier: Apache-2.0
"""Writes tiny checkpoints of well-known models and what they compute: make_model_parity.py <folder>.

Each model gets two files: <name>.safetensors, as its own library saves it, and <name>_expected.safetensors, with inputs
and results. They are committed (tests/parity/data), so that the tests need neither library. Weights are random numbers
of f32; results are computed in f64, as far as the models do, and rounded to f32.
Made with PyTorch 2.8.0 and transformers 4.57.
"""
import pathlib
import shutil
import sys
import tempfile

import torch
import transformers
from torch import nn

from make_parity import draw, drawn_parameters, write

B, S, T, VOCABULARY, WIDTH, HEADS, INNER, LAYERS = 2, 7, 5, 23, 16, 2, 24, 2
LENGTHS = [7, 4]  # of the source's rows


def prepared(model):
    """Random numbers everywhere, norms and biases included; norms are around 1, so that tokens stay apart."""
    model = drawn_parameters(model.eval())
    for name, parameter in model.named_parameters():
        if name.endswith("weight") and ("norm" in name.lower() or "ln_" in name):
            parameter += 1
    model.config._attn_implementation = "eager"
    return model


def save(model, path):
    """As the library itself does it: in f32, each shared tensor once."""
    with tempfile.TemporaryDirectory() as folder:
        model.float().save_pretrained(folder)
        shutil.copyfile(pathlib.Path(folder) / "model.safetensors", path)
    model.double()


def record(folder, name, model, tensors):
    save(model, folder / f"{name}.safetensors")
    write(folder / f"{name}_expected.safetensors", tensors)


def draw_ids(rows, length):
    return torch.randint(0, VOCABULARY, (rows, length))


def attention_mask():
    return (torch.arange(S)[None, :] < torch.tensor(LENGTHS)[:, None]).long()


def make_bert(folder):
    model = prepared(transformers.BertModel(transformers.BertConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        intermediate_size=INNER, max_position_embeddings=12, type_vocab_size=2)))
    ids, types = draw_ids(B, S), torch.randint(0, 2, (B, S))
    states = model(ids, attention_mask=attention_mask(), token_type_ids=types).last_hidden_state
    without_types = model(ids, attention_mask=attention_mask()).last_hidden_state
    record(folder, "bert", model, {"source": ids, "types": types, "lengths": torch.tensor(LENGTHS), "states": states,
                                   "states_without_types": without_types})


def make_gpt2(folder):
    model = prepared(transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=VOCABULARY, n_positions=12, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, n_inner=INNER)))
    ids = draw_ids(B, T)
    record(folder, "gpt2", model, {"target": ids, "logits": model(ids).logits})


def make_llama(folder):
    model = prepared(transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=4,
        num_key_value_heads=2, head_dim=6, intermediate_size=INNER, max_position_embeddings=12, rope_theta=500.0,
        rms_norm_eps=1e-6)))
    ids = draw_ids(B, T)
    record(folder, "llama", model, {"target": ids, "logits": model(ids).logits})


def make_marian(folder):
    model = transformers.MarianMTModel(transformers.MarianConfig(
        vocab_size=VOCABULARY, d_model=WIDTH, encoder_layers=LAYERS, decoder_layers=LAYERS, encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS, encoder_ffn_dim=INNER, decoder_ffn_dim=INNER, max_position_embeddings=12,
        activation_function="swish", scale_embedding=True, pad_token_id=0, decoder_start_token_id=0, eos_token_id=1,
        forced_eos_token_id=1))
    parts = (model.model.encoder, model.model.decoder)
    sinusoids = [part.embed_positions.weight.clone().double() for part in parts]
    model = prepared(model)
    for part, table in zip(parts, sinusoids):  # not learned
        part.embed_positions.weight.copy_(table)
    model.final_logits_bias = draw(1, VOCABULARY)  # a buffer
    source, target = draw_ids(B, S), draw_ids(B, T)
    logits = model(input_ids=source, attention_mask=attention_mask(), decoder_input_ids=target).logits
    states = model.model.encoder(source, attention_mask=attention_mask()).last_hidden_state
    record(folder, "marian", model, {"source": source, "target": target, "lengths": torch.tensor(LENGTHS),
                                     "logits": logits, "states": states})


class RecurrentTranslator(nn.Module):
    """Bahdanau's, as people write it in PyTorch: each part with a width of its own."""

    def __init__(self):
        super().__init__()
        self.encoder_embedding = nn.Embedding(VOCABULARY, 6)
        self.encoder_gru = nn.GRU(6, 5, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(10, 8)
        self.decoder_embedding = nn.Embedding(19, 7)
        self.query = nn.Linear(8, 8)
        self.key = nn.Linear(10, 8, bias=False)
        self.score = nn.Linear(8, 1, bias=False)
        self.decoder_cell = nn.GRUCell(7 + 10, 8)
        self.readout = nn.Linear(8 + 10, 8)
        self.output = nn.Linear(8, 19)

    def forward(self, source, target):
        packed = nn.utils.rnn.pack_padded_sequence(self.encoder_embedding(source), LENGTHS, batch_first=True,
                                                   enforce_sorted=False)
        states, last = self.encoder_gru(packed)
        states = nn.utils.rnn.pad_packed_sequence(states, batch_first=True, total_length=S)[0]
        h = torch.tanh(self.bridge(torch.cat((last[0], last[1]), 1)))
        hidden = torch.arange(S)[None, :] >= torch.tensor(LENGTHS)[:, None]
        logits = []
        for token in self.decoder_embedding(target).unbind(1):
            scores = self.score(torch.tanh(self.query(h)[:, None] + self.key(states))).squeeze(2)
            weights = scores.masked_fill(hidden, -torch.inf).softmax(1)
            context = (weights[:, :, None] * states).sum(1)
            h = self.decoder_cell(torch.cat((token, context), 1), h)
            logits.append(self.output(torch.tanh(self.readout(torch.cat((h, context), 1)))))
        return torch.stack(logits, 1)


def make_gru(folder):
    model = drawn_parameters(RecurrentTranslator())
    source, target = draw_ids(B, S), torch.randint(0, 19, (B, T))
    logits = model(source, target)
    write(folder / "gru_translator.safetensors", model.state_dict())
    write(folder / "gru_translator_expected.safetensors",
          {"source": source, "target": target, "lengths": torch.tensor(LENGTHS), "logits": logits})


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for seed, make in enumerate((make_bert, make_gpt2, make_llama, make_marian, make_gru)):
        torch.manual_seed(100 + seed)
        with torch.no_grad():
            make(folder)


if __name__ == "__main__":
    main()
