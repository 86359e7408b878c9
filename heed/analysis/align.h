// SPDX-License-Identifier: Apache-2.0
#pragma once
// Word alignment from cross-attention: the word of the source that the model attended to most when it predicted each
// word of the target. The target is run through the model in one pass (teacher forcing), so it does not matter how the
// target was found.
#include "heed/analysis/word_weights.h"
#include "heed/base/describe.h"
#include "heed/base/export.h"
#include "heed/data/batch.h"
#include "heed/models/model.h"
#include "heed/text/metrics.h"

namespace heed::analysis {

// The layer and head that alignments are taken from.
struct AlignOptions {
  int64_t layer{-1};  // of the decoder, from 0; -1: the last
  int64_t head{-1};   // from 0; -1: the mean of all

  static void describe(AlignOptions& o, auto&& field) {
    field("align_layer", o.layer, "layer whose attention aligns, from 0; -1: the last", Range::at_least(-1));
    field("align_head", o.head, "its head, from 0; -1: the mean of all", Range::at_least(-1));
  }
};

// The cross-attention weights of a batch, [B,T,S]: row t is of the step that predicts token t of the target. Throws
// Error for a model without cross-attention, and for a layer or head that it does not have.
HEED_API Tensor cross_weights(nn::Pass&, const models::Model&, const data::Batch&, const AlignOptions& = {});

// Each word of the target with the word of the source that got most of its attention; the end of a sentence is no word.
// By source, then target.
HEED_API text::Alignment align_words(const Tensor& weights, int64_t row, const WordMap&);

}  // namespace heed::analysis
