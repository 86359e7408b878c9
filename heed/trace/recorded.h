// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a Recorder keeps until it is put together: by layer, and by node of the search tree. Internal.
#include <map>
#include <string>
#include <vector>

#include "heed/nn/observer.h"
#include "heed/trace/event_reader.h"
#include "heed/trace/recorder.h"

namespace heed::trace {

// Queries of one node in one layer, one after the other; H heads that were chosen.
struct NodeRows {
  int64_t position = 0, count = 0;             // of all its queries
  int64_t begin = 0, kept = 0;                 // of those whose rows were chosen
  int64_t keys = 0;                            // S
  bool whole = true;                           // weights are there
  std::vector<float> weights{};                // [H,kept,S]
  std::vector<float> lse{}, entropy{}, max{};  // [H,kept]
  std::vector<float> top_weights{};            // [H,kept,K]
  std::vector<uint32_t> top_keys{};
  double row_sum_error = 0;
  std::map<int64_t, std::vector<float>> q{};       // of a head: [kept,D]
  std::map<int64_t, std::vector<float>> k{}, v{};  // of a head of keys: of its own tokens, or of all of a source
  // Of a long text, by heads: [H,M,N], and [H,S].
  int64_t map_rows = 0, map_columns = 0;
  std::vector<float> map_mean{}, map_max{}, received{};
};

struct RecordedLayer {
  std::string path{};
  nn::AttentionRole role{};
  int64_t all_heads = 0, all_key_heads = 0, D = 0, Dv = 0;
  std::vector<int64_t> heads{};  // that were chosen
  Score score{};
  Mask mask{};
  std::vector<float> w{};  // [H,D], of the additive score
  std::map<int64_t, NodeRows> nodes{};

  int64_t key_head(int64_t head) const { return head / (all_heads / all_key_heads); }
};

struct NodeStates {
  int64_t position = 0, count = 0;
  std::vector<float> h{}, c{}, gates{};  // [count,...]
  std::vector<float> h0{}, c0{};
};

struct RecordedStates {
  std::string path{}, cell{};
  bool reverse = false;
  int64_t width = 0;
  std::vector<std::string> gate_names{};
  std::map<int64_t, NodeStates> nodes{};
};

struct Recorder::Kept {
  Kept(Parallel& own, RecorderOptions chosen, int64_t row) : parallel(own), options(std::move(chosen)), sentence(row) {}

  Parallel& parallel;
  const RecorderOptions options;
  const int64_t sentence;
  Workspace workspace;
  std::vector<RecordedLayer> layers{};  // in the order in which they ran
  std::vector<std::string> seen{};      // paths of all layers, with those that were not chosen
  std::vector<RecordedStates> states{};

  // The layer of an event, which row b is of; made where it runs for the first time.
  RecordedLayer& layer_of(const nn::AttentionEvent&, const EventReader&, int64_t b);
  // Throws Error where a layer or head that was chosen did not run.
  void check_chosen() const;
};

// The K strongest of a row, and its entropy and maximum, are added to those of `to`.
void add_row_statistics(std::span<const float> row, int64_t K, NodeRows& to);

// How far weights that are computed from vectors of a head, as they are stored, are from the exact ones, at most: q
// [T,D], k [S,D], the rows' log-sum-exp, and the K strongest keys of each row with their exact weights.
struct TileRows {
  std::span<const float> q{}, k{}, lse{}, top_weights{};
  std::span<const uint32_t> top_keys{};
  int64_t first = 0;  // position of the first query
};
double tile_error(const RecordedLayer&, size_t head_place, const TileRows&, Storage stored);

// Fills `to` with what takes memory linear in the length, in place of rows: from event row b.
void observe_long(const nn::AttentionEvent&, int64_t b, const RecordedLayer&, const RecorderOptions&, Workspace&,
                  Parallel&, NodeRows& to);

}  // namespace heed::trace
