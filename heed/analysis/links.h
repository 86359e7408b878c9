// SPDX-License-Identifier: Apache-2.0
#pragma once
// What some tokens take from others in each head, three ways:
//
//   weight_links    a_ts                                  what is looked at
//   value_links     a_ts |g W_h v_s|                      how much of it goes on: W_h are the output projection's
//   columns
//                                                         of the head, g its gate
//   gradient_links  a_ts d target / d a_ts                what that does to the target, to first order
//
// Only the rows of the chosen queries are computed: memory is linear in the length.
#include <cstdint>
#include <string>
#include <vector>

#include "heed/analysis/target.h"
#include "heed/base/export.h"
#include "heed/nn/pass.h"

namespace heed::analysis {

// The tokens that look, by the side they are on: a word has one or more. Layers of a side without any are left out.
struct Queries {
  std::vector<int64_t> source{}, target{};  // from 0; the target's first token is <s>: token t predicts output t
};

// From the chosen queries to each key of one head.
struct HeadLinks {
  std::string layer{};
  nn::AttentionRole role{};
  int64_t head = 0;
  std::vector<double> links{};  // [S]: the mean over the queries of weights, with values too; of gradients, the sum
};

// These throw Error for a model without attention, and for a query that is not there.
HEED_API std::vector<HeadLinks> weight_links(const nn::Pass&, const Question&, const Queries&);
// Also where the projection was packed for inference. Layers without one take the values as they are.
HEED_API std::vector<HeadLinks> value_links(const nn::Pass&, const Question&, const Queries&);
// Without layers whose contexts are fed to a recurrent cell: that recurrence is one op.
HEED_API std::vector<HeadLinks> gradient_links(const nn::Pass&, const Question&, const Queries&);

}  // namespace heed::analysis
