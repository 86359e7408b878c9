// SPDX-License-Identifier: Apache-2.0
#pragma once
// The operator Attention of ONNX, opsets 23 to 25, as a call of heed: what a case's tensors and attributes mean. T is
// the type that numbers are wanted in: double for the twin, float for the kernels.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "heed/base/view.h"
#include "heed/kernels/attention/observe.h"
#include "tests/conformance/case.h"

namespace heed::conformance {

enum AttentionInput : size_t { kQ, kK, kV, kMask, kPastKey, kPastValue, kNonpad };
enum AttentionOutput : size_t { kY, kPresentKey, kPresentValue, kScores };

inline const Signature kAttention = {
    .op = "Attention",
    .first_opset = 23,
    .last_opset = 25,
    .inputs = {"Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen"},
    .outputs = {"Y", "present_key", "present_value", "qk_matmul_output"},
    .attributes = {"is_causal", "kv_num_heads", "left_window_size", "q_num_heads", "qk_matmul_output_mode",
                   "right_window_size", "scale", "softcap", "softmax_precision"},
};

template <class T>
class AttentionNode {
 public:
  explicit AttentionNode(const Case& c) : case_(c) {
    c.require(kAttention);
    for (const size_t place : {kQ, kK, kV}) {
      if (!c.input(place)) c.refuse("has no " + kAttention.inputs[place]);
    }
    q = heads_of(kQ, "q_num_heads");
    k = joined(kPastKey, heads_of(kK, "kv_num_heads"));
    v = joined(kPastValue, heads_of(kV, "kv_num_heads"));
    if (const Tensor* mask = c.input(kMask)) set_mask(*mask);
    set_places();
    if (const auto scale = c.number("scale")) options.scale = static_cast<float>(*scale);
    options.softcap = static_cast<float>(c.number("softcap").value_or(0));
  }
  AttentionNode(const AttentionNode&) = delete;  // views look into it
  AttentionNode& operator=(const AttentionNode&) = delete;

  View<const T, 4> q, k, v;  // [B,Hq,T,D]  [B,Hk,S,D]  [B,Hk,S,Dv], with past keys and values in front
  View<const T, 4> bias;
  kernels::AttentionOptions options;

  Dims<4> pairs() const { return {q.shape(0), q.shape(1), q.shape(2), k.shape(2)}; }
  int64_t group() const { return q.shape(1) / k.shape(1); }

  kernels::AttentionStage stage() const {
    const int64_t mode = case_.integer("qk_matmul_output_mode").value_or(0);
    if (mode < 0 || mode > 3) case_.refuse("qk_matmul_output_mode is " + std::to_string(mode) + ", expected 0 to 3");
    using enum kernels::AttentionStage;
    return std::vector{raw, capped, masked, weight}[static_cast<size_t>(mode)];
  }

  // Y as the node wants it, [B,Hq,T,Dv] or, where the inputs have 3 dimensions, [B,T,Hq*Dv]; seen as [B,Hq,T,Dv].
  View<T, 4> out_in(std::vector<T>& numbers) const {
    const int64_t B = q.shape(0), H = q.shape(1), N = q.shape(2), Dv = v.shape(3);
    numbers.assign(static_cast<size_t>(B * H * N * Dv), std::numeric_limits<T>::quiet_NaN());
    return rank() == 4 ? View<T, 4>(numbers.data(), {B, H, N, Dv})
                       : View<T, 4>(numbers.data(), {B, N, H, Dv}).transposed(1, 2);
  }

 private:
  size_t rank() const { return case_.input(kQ)->array.shape.size(); }

  std::vector<T>& numbers_of(const Tensor& tensor) {
    if constexpr (std::is_same_v<T, double>) {
      return owned_.emplace_back(tensor.array.as_doubles());
    } else {
      return owned_.emplace_back(tensor.array.as_floats());
    }
  }

  // [B,H,N,D] as it is, [B,N,H*D] as a view with strides.
  View<const T, 4> heads_of(AttentionInput place, const std::string& attribute) {
    const io::Shape& shape = case_.input(place)->array.shape;
    const int64_t H = case_.integer(attribute).value_or(0);
    if (shape.size() != rank() || (shape.size() != 4 && shape.size() != 3)) {
      case_.refuse(kAttention.inputs[place] + " has shape " + io::to_string(shape) +
                   ", expected 4 dimensions or 3, as many as Q has");
    }
    if (shape.size() == 4) {
      if (H != 0 && H != shape[1]) {
        case_.refuse(attribute + " is " + std::to_string(H) + ", expected " + std::to_string(shape[1]));
      }
      return View<const T, 4>(numbers_of(*case_.input(place)).data(), {shape[0], shape[1], shape[2], shape[3]});
    }
    if (H < 1 || shape[2] % H != 0) {
      case_.refuse(attribute + " is " + std::to_string(H) + ", expected a divisor of " + std::to_string(shape[2]));
    }
    const Dims<4> rows{shape[0], shape[1], H, shape[2] / H};
    return View<const T, 4>(numbers_of(*case_.input(place)).data(), rows).transposed(1, 2);
  }

  // Past rows [B,H,P,D], if there are, and after them the present ones.
  View<const T, 4> joined(AttentionInput place, const View<const T, 4>& now) {
    if (!case_.input(kPastKey) != !case_.input(kPastValue)) case_.refuse("has one of past_key and past_value only");
    const Tensor* past = case_.input(place);
    if (!past) return now;
    const auto [B, H, N, D] = now.shape();
    const io::Shape& shape = past->array.shape;
    if (shape.size() != 4 || shape[0] != B || shape[1] != H || shape[3] != D) {
      case_.refuse(kAttention.inputs[place] + " has shape " + io::to_string(shape) + ", expected [" +
                   std::to_string(B) + ", " + std::to_string(H) + ", past keys, " + std::to_string(D) + "]");
    }
    const int64_t P = shape[2];
    const View<const T, 4> before(numbers_of(*past).data(), {B, H, P, D});
    std::vector<T>& all = owned_.emplace_back(static_cast<size_t>(B * H * (P + N) * D));
    const View<T, 4> rows(all.data(), {B, H, P + N, D});
    for (int64_t b = 0; b < B; ++b) {
      for (int64_t h = 0; h < H; ++h) {
        for (int64_t n = 0; n < P + N; ++n) {
          std::copy_n(n < P ? before.at(b, h, n) : now.at(b, h, n - P), D, rows.at(b, h, n));
        }
      }
    }
    return rows;
  }

  // Broadcast from the right, as NumPy does: missing leading dimensions are 1. Rows that are too short go on with what
  // hides. Booleans say what is visible; numbers are added.
  void set_mask(const Tensor& mask) {
    const io::Shape& given = mask.array.shape;
    const int64_t S = k.shape(2), keys = given.empty() ? 0 : given.back();
    if (given.empty() || given.size() > 4 || keys > S) {
      case_.refuse("attn_mask has shape " + io::to_string(given) + ", expected a broadcast of " + to_string(pairs()));
    }
    Dims<4> shape{1, 1, 1, S};
    std::copy(given.begin(), given.end() - 1, shape.end() - static_cast<int64_t>(given.size()));
    const auto lengthen = [&](const auto& from, auto* to) {
      for (int64_t row = 0; row < element_count(shape) / S; ++row) {
        std::copy_n(from.begin() + row * keys, keys, to + row * S);
      }
    };
    const auto size = static_cast<size_t>(element_count(shape));
    if (mask.array.type == io::ElementType::boolean) {
      visible_ = std::make_unique<bool[]>(size);
      lengthen(mask.array.as<bool>(), visible_.get());
      options.mask.dense = kernels::Dense{View<const bool, 4>(visible_.get(), shape)};
    } else {
      const std::vector<T>& numbers = numbers_of(mask);
      std::vector<T>& whole = owned_.emplace_back(size, -std::numeric_limits<T>::infinity());
      lengthen(numbers, whole.data());
      bias = View<const T, 4>(whole.data(), shape);
    }
  }

  // Key lengths, causal mask and window. Query t stands at key t + P after P past keys; where the number of keys is
  // given for each batch, the last query stands at the last of them, even if the first then stand before all keys.
  void set_places() {
    using kernels::MaskAlignment, kernels::Causal, kernels::Lengths, kernels::Window;
    const Tensor* past = case_.input(kPastKey);
    MaskAlignment align{MaskAlignment::Kind::offset, past ? past->array.shape[2] : 0};
    if (const Tensor* nonpad = case_.input(kNonpad)) {
      if (past) case_.refuse("has past_key and nonpad_kv_seqlen, expected one of them");
      const auto keys = nonpad->array.template as<int64_t>();
      lengths_.assign(keys.begin(), keys.end());
      options.mask.lengths = Lengths{lengths_};
      align = {MaskAlignment::Kind::bottom_right, 0};
    }
    if (case_.integer("is_causal").value_or(0) != 0) options.mask.causal = Causal{align};
    const auto bound = [&](const char* attribute) {  // -1 is none
      const int64_t keys = case_.integer(attribute).value_or(-1);
      if (keys < -1) case_.refuse(std::string(attribute) + " is " + std::to_string(keys) + ", expected -1 or more");
      return keys == -1 ? Window::kUnbounded : keys;
    };
    const Window window{bound("left_window_size"), bound("right_window_size"), align};
    if (std::min(window.left, window.right) != Window::kUnbounded) options.mask.window = window;
  }

  const Case& case_;
  std::deque<std::vector<T>> owned_;  // it grows without moving what it holds
  std::unique_ptr<bool[]> visible_;
  std::vector<int64_t> lengths_;
};

}  // namespace heed::conformance
