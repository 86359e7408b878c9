// SPDX-License-Identifier: Apache-2.0
#pragma once
// The whole library in one include: open a model folder and translate, generate, tag, score or embed, and record what
// was attended to; build a model, train it, save it. Not here: attention alone (heed/attention.h), and the parts that
// models are built of, which have headers of their own (heed/nn, heed/ops).
#include "heed/analysis/align.h"
#include "heed/analysis/explain.h"
#include "heed/analysis/integrated_gradients.h"
#include "heed/analysis/leave_out.h"
#include "heed/analysis/lens.h"
#include "heed/analysis/patch.h"
#include "heed/analysis/rollout.h"
#include "heed/analysis/word_links.h"
#include "heed/attention.h"
#include "heed/base/cancel.h"
#include "heed/data/batches.h"
#include "heed/data/text_model.h"
#include "heed/decode/embed.h"
#include "heed/decode/generate.h"
#include "heed/decode/score.h"
#include "heed/decode/tag.h"
#include "heed/decode/translate.h"
#include "heed/dist/open.h"
#include "heed/evaluate/evaluate.h"
#include "heed/folder/model_folder.h"
#include "heed/models/model.h"
#include "heed/models/presets.h"
#include "heed/shard/merge.h"
#include "heed/shard/run.h"
#include "heed/text/tokenizer.h"
#include "heed/trace/record.h"
#include "heed/trace/trace_file.h"
#include "heed/train/optimizer.h"
#include "heed/train/run.h"
#include "heed/train/trainer.h"

namespace heed {

using data::TextModel, data::Tokenizers;
using decode::Embedder, decode::Engine, decode::Generator, decode::Scorer, decode::Tagger, decode::Translator;

}  // namespace heed
