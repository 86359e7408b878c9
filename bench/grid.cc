// SPDX-License-Identifier: Apache-2.0
#include "bench/grid.h"

#include <algorithm>
#include <array>
#include <sstream>

#include "heed/base/error.h"
#include "heed/kernels/attention/visibility.h"

namespace heed::bench {

const char* to_string(Pass pass) {
  return std::array{"forward", "backward", "forward_backward", "decode"}[static_cast<size_t>(pass)];
}

const char* to_string(Layout layout) { return std::array{"BHTD", "BTHD", "packed"}[static_cast<size_t>(layout)]; }

const char* to_string(MaskKind mask) {
  return std::array{"none", "causal", "window128", "lengths"}[static_cast<size_t>(mask)];
}

const char* to_string(Extra extra) {
  return std::array{"none", "alibi",  "dense",    "bias",    "dropout", "softcap",
                    "top8", "map256", "additive", "paged16", "paged128"}[static_cast<size_t>(extra)];
}

Case plain_case(const Case& c) {
  Case wide = c;
  wide.extra = Extra::none;
  if (wide != c) return wide;
  wide.keys = DType::f32;
  if (c.T == 1) return wide;
  return wide != c || c.H != c.Hk || c.mask == MaskKind::window128 || c.mask == MaskKind::lengths ? Case{} : c;
}

std::vector<int64_t> key_lengths(const Case& c) {
  if (c.mask != MaskKind::lengths) return {};
  return std::vector<int64_t>(static_cast<size_t>(c.B), c.S * 3 / 4 + 5);
}

kernels::Mask mask_of(const Case& c, const std::vector<int64_t>& lengths) {
  switch (c.mask) {
    case MaskKind::causal:
      return {kernels::Causal::top_left()};
    case MaskKind::window128:
      return {kernels::Window::top_left(128, 128)};
    case MaskKind::lengths:
      return {kernels::Lengths{lengths}};
    case MaskKind::none:
      break;
  }
  return {};
}

int64_t visible_scores(const Case& c) {
  const std::vector<int64_t> lengths = key_lengths(c);
  return c.H * kernels::Visibility(mask_of(c, lengths), c.B, c.T, c.S).pairs();
}

double flops(Pass pass, const Case& c) {
  const int64_t per_score = pass == Pass::backward ? 10 : pass == Pass::forward_backward ? 14 : 4;
  return static_cast<double>(per_score * c.D * visible_scores(c));
}

int64_t tanhs(const Case& c) { return c.extra == Extra::additive ? c.D * visible_scores(c) : 0; }

std::string name(const Row& row) {
  const Case& c = row.problem;
  std::ostringstream text;
  text << to_string(row.pass) << ' ' << to_string(c.layout) << ' ' << to_string(c.mask) << ' ' << c.B << ',' << c.H;
  if (c.Hk != c.H) text << ':' << c.Hk;
  text << ',' << c.T;
  if (c.S != c.T) text << 'x' << c.S;
  text << ',' << c.D;
  if (c.keys != DType::f32) text << ' ' << name_of(c.keys);
  if (c.extra != Extra::none) text << ' ' << to_string(c.extra);
  return text.str();
}

namespace {

void add_passes(std::vector<Row>& rows, const Case& c) {
  for (Pass pass : {Pass::forward, Pass::backward, Pass::forward_backward}) rows.push_back({pass, c});
}

void add_extras(std::vector<Row>& rows) {
  for (int64_t T : {512, 2048}) {
    for (Extra extra : {Extra::alibi, Extra::dense, Extra::bias, Extra::dropout, Extra::softcap, Extra::top8,
                        Extra::map256, Extra::additive}) {
      const Case c{.T = T, .S = T, .extra = extra};
      rows.push_back({Pass::forward, c});
      const bool differs_backward =
          extra == Extra::alibi || extra == Extra::bias || extra == Extra::dropout || extra == Extra::softcap;
      if (T == 512 && differs_backward) rows.push_back({Pass::backward, c});
    }
  }
}

}  // namespace

std::vector<Row> attention_grid() {
  // B, H, T, D
  constexpr int64_t kShapes[][4] = {{1, 8, 32, 64},    {64, 8, 32, 64}, {16, 8, 64, 64},
                                    {1, 8, 128, 64},   {1, 8, 512, 64}, {1, 8, 2048, 64},
                                    {1, 1, 16384, 64}, {1, 8, 512, 32}, {1, 8, 512, 128}};
  std::vector<Row> rows;
  for (const auto& [B, H, T, D] : kShapes) {
    for (MaskKind mask : {MaskKind::none, MaskKind::causal}) {
      add_passes(rows, {.B = B, .H = H, .Hk = H, .T = T, .S = T, .D = D, .mask = mask});
    }
  }
  for (int64_t S : {4096, 65536}) {  // in the last-level cache, and in memory
    for (DType keys : {DType::f32, DType::bf16, DType::f16}) {
      rows.push_back({Pass::decode, {.T = 1, .S = S, .keys = keys}});
    }
    for (Extra extra : {Extra::paged16, Extra::paged128}) {
      rows.push_back({Pass::decode, {.T = 1, .S = S, .extra = extra}});
    }
  }
  add_passes(rows, {.layout = Layout::bthd});
  add_passes(rows, {.layout = Layout::packed});
  add_passes(rows, {.Hk = 2});
  add_passes(rows, {.mask = MaskKind::window128});
  add_passes(rows, {.mask = MaskKind::lengths});
  for (int64_t T : {512, 2048}) {
    for (DType keys : {DType::bf16, DType::f16}) rows.push_back({Pass::forward, {.T = T, .S = T, .keys = keys}});
  }
  add_extras(rows);
  return rows;
}

std::vector<Row> select(const std::vector<Row>& rows, const std::string& filter) {
  std::vector<Row> selected;
  for (const Row& row : rows) {
    const std::string text = name(row);
    if (text == filter) return {row};
    std::istringstream words(filter);
    bool all = true;
    for (std::string word; words >> word;) all = all && text.find(word) != std::string::npos;
    if (all) selected.push_back(row);
  }
  if (!selected.empty()) return selected;
  std::string message = "--filter is '" + filter + "' and leaves no row, expected words of names such as";
  const size_t examples = std::min<size_t>(rows.size(), 3);
  for (size_t i = 0; i < examples; ++i) {
    message += (i ? ", '" : " '") + name(rows[i * (rows.size() - 1) / std::max<size_t>(examples - 1, 1)]) + "'";
  }
  throw Error(message);
}

}  // namespace heed::bench
