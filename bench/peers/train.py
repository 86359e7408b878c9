#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A step of training: heed against PyTorch in eager mode, the same models and batches, in the same rounds.

  bench/peers/setup.sh /tmp/peers
  /tmp/peers/bin/python bench/peers/train.py

A step is forward, cross-entropy with smoothing, backward, clipping of the gradient's norm and AdamW (PyTorch's fused one),
with dropout, over 4096 tokens on each side. First each model is given heed's parameters, and the losses of one batch
without dropout are compared: where they differ, nothing is measured.
"""
import tempfile

import compare
import heed_folder
import torch
import torch_models
from torch import nn

PRESETS = ("transformer-small", "transformer-base", "rnn-attention")
SMOOTHING, CLIP = 0.1, 1.0  # heed/train/trainer.h
ADAMW = dict(lr=1e-5, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.01)  # heed/train/optimizer.h
CHECKED_TOKENS = 256
TOLERANCE = 1e-5  # of the loss, relative: some hundred times the rounding of f32, for sums over V logits and six layers


def arguments():
    parser = compare.arguments(__doc__, "train.json", rounds=5)
    parser.add_argument("--vocabulary", type=int, default=8000)
    parser.add_argument("--batch-tokens", type=int, default=4096)
    parser.add_argument("--length", type=int, default=32)
    parser.add_argument("--dropout", type=float, default=0.1)
    return parser.parse_args()


def loss_of(model, source, target_in, target_out):
    logits = model(source, target_in)
    return nn.functional.cross_entropy(logits.flatten(0, 1), target_out.flatten(), label_smoothing=SMOOTHING)


class Training:
    """The model of a preset in PyTorch, with heed's parameters, and its batch."""

    def __init__(self, options, heed, preset):
        self.command = ("train", "--preset", preset, "--rounds", 1, "--vocabulary", options.vocabulary)
        self.command += ("--length", options.length)
        self.options, self.heed, self.preset = options, heed, preset
        with tempfile.TemporaryDirectory() as folder:
            found = self.bench("--batch-tokens", CHECKED_TOKENS, "--dropout", 0, "--ids", "--save", folder)
            tensors = {name: torch.from_numpy(values) for name, values in heed_folder.read_tensors(folder).items()}
            config = heed_folder.read_config(folder)
        self.model = torch_models.make(config, options.dropout, options.length)
        self.model.load_heed(tensors)
        self.parameters = sum(p.numel() for p in self.model.parameters())
        self.check(found)

    def bench(self, *more):
        return self.heed.one_row(*self.command, *more)

    def check(self, found):
        if self.parameters != found["parameters"]:
            raise SystemExit(
                f"{self.preset}: PyTorch's model has {self.parameters} parameters, expected heed's {found['parameters']}"
            )
        with torch.inference_mode():
            loss = float(loss_of(self.model.eval(), *self.ids(found)))
        if not abs(loss / found["first_loss"] - 1) < TOLERANCE:
            raise SystemExit(f"{self.preset}: the loss is {loss} in PyTorch, expected heed's {found['first_loss']}")
        print(f"{self.preset}: {self.parameters} parameters, loss {loss:.6f}, heed's {found['first_loss']:.6f}", flush=True)

    def ids(self, found):
        rows = [torch.tensor(found[name]).reshape(-1, self.options.length) for name in ("source", "target_in", "target_out")]
        return [ids.long() for ids in rows]

    def random_ids(self):
        """Of the size of heed's batch: which ids they are makes no difference to the time."""
        o = self.options
        torch.manual_seed(1)  # fixed seed: every run the same
        return [torch.randint(4, o.vocabulary, (o.batch_tokens // o.length, o.length)) for _ in range(3)]

    def step(self):
        """One call is one step."""
        model = self.model.train()
        parameters = list(model.parameters())
        optimizer = torch.optim.AdamW(parameters, fused=True, **ADAMW)
        batch = self.random_ids()

        def call():
            optimizer.zero_grad(set_to_none=True)
            loss_of(model, *batch).backward()
            nn.utils.clip_grad_norm_(parameters, CLIP)
            optimizer.step()

        return call


def main():
    options = arguments()
    heed = compare.Heed(options.heed)
    chosen = compare.selected([{"name": preset} for preset in PRESETS], options.filter)
    report = compare.new_report(options, {"heed": heed.version, "torch": torch.__version__})
    for name in ("vocabulary", "batch_tokens", "length", "dropout"):
        report[name] = getattr(options, name)
    for row in chosen:
        training = Training(options, heed, row["name"])
        size = ("--batch-tokens", options.batch_tokens, "--dropout", options.dropout)
        for threads in options.threads:
            torch.set_num_threads(threads)
            ours, figures = compare.measure(
                options.rounds,
                threads,
                lambda: training.bench(*size, "--threads", threads),
                {"PyTorch": {"eager": training.step()}},
            )
            middle = sorted(ours, key=lambda found: found["ms"])[len(ours) // 2]
            own = {name: middle[name] for name in ("parameters", "tokens", "tokens_per_second", "gflops", "percent_of_peak")}
            compare.add_row(report, middle, {"name": row["name"], "threads": threads, **own, **figures})
    compare.write(report, options.out)


if __name__ == "__main__":
    main()
