// SPDX-License-Identifier: Apache-2.0
#pragma once
// A trace: what a model attended to while it said something, as plain data. docs/trace.md explains it field by field;
// names are those of the file. What was not captured is absent: an empty Ref, an empty optional.
//
//   const trace::Trace trace = trace::load("it.trace.json");
//   for (const trace::Attention& one : trace.attn) draw(trace.values(one.weights), one.heads.size());
//
// Not here: how one is made (record.h), the file (trace_file.h), the page that shows it.
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heed/base/describe.h"
#include "heed/base/export.h"

namespace heed::trace {

inline constexpr const char* kFormat = "heed-trace";
inline constexpr int64_t kMajorVersion = 1, kMinorVersion = 1;  // a reader throws on another major one

// How numbers are stored. u8n: a byte u is low + u / 255 (high - low). u32: keys; kNoKey where there is none.
enum class Storage : uint8_t { f32, f16, u8n, u32 };
constexpr auto enum_names(Storage) {
  return std::to_array<EnumName<Storage>>(
      {{"f32", Storage::f32}, {"f16", Storage::f16}, {"u8n", Storage::u8n}, {"u32", Storage::u32}});
}
inline constexpr uint32_t kNoKey = 0xFFFFFFFF;

// Numbers with a shape, little-endian, all finite.
struct HEED_API Array {
  std::vector<int64_t> shape{};
  Storage dtype{Storage::f32};
  double low = 0, high = 1;  // of u8n
  std::vector<std::byte> bytes{};

  // These throw Error where a number is not finite.
  static Array f32(std::vector<int64_t> shape, std::span<const float>);
  static Array f16(std::vector<int64_t> shape, std::span<const float>);  // f32 where one is too large for f16
  static Array u8n(std::vector<int64_t> shape, std::span<const float>);  // from 0, or the lowest, to the highest
  static Array u32(std::vector<int64_t> shape, std::span<const uint32_t>);

  std::vector<float> values() const;   // throws Error for u32
  std::vector<uint32_t> keys() const;  // of u32 alone
};
HEED_API int64_t bytes_of(Storage);  // of one number

// The name of an array among Trace::tensors. Empty: not captured.
struct Ref {
  std::string name{};
  explicit operator bool() const { return !name.empty(); }
};

struct Token {
  int64_t id = 0;
  std::string piece{};                    // as the tokenizer has it: "▁cat", "</s>"
  std::string text{};                     // as it was written, without space
  std::optional<int64_t> start{}, end{};  // its bytes in the text of the sequence
  std::optional<int64_t> word{};          // the word of that text that it is a part of, from 0
  bool special = false;                   // <s>, </s>: no text
  std::optional<double> prob{};           // that the model gave it, given those before it
};

// learned: one query that is no token, but a parameter.
enum class SequenceRole : uint8_t { source, target, text, learned };
constexpr auto enum_names(SequenceRole) {
  return std::to_array<EnumName<SequenceRole>>({{"source", SequenceRole::source},
                                                {"target", SequenceRole::target},
                                                {"text", SequenceRole::text},
                                                {"learned", SequenceRole::learned}});
}

// What a model read. A target is the decoder's input: <s> and all tokens but the end.
struct Sequence {
  std::string id{};
  SequenceRole role{SequenceRole::source};
  std::string text{};
  std::vector<Token> tokens{};
};

// Tokens [begin, end) of a sequence.
struct Span {
  std::string seq{};
  int64_t begin = 0, end = 0;

  int64_t size() const { return end - begin; }
};

enum class Role : uint8_t { self, masked, cross };  // as nn::AttentionRole
constexpr auto enum_names(Role) {
  return std::to_array<EnumName<Role>>({{"self", Role::self}, {"masked", Role::masked}, {"cross", Role::cross}});
}

// score = softcap(scale f(q, k)) - slope |p - s|. f: q . k, or w . tanh(q + k) where it is additive.
enum class ScoreFunction : uint8_t { dot, additive };
constexpr auto enum_names(ScoreFunction) {
  return std::to_array<EnumName<ScoreFunction>>({{"dot", ScoreFunction::dot}, {"additive", ScoreFunction::additive}});
}
struct Score {
  ScoreFunction fn{ScoreFunction::dot};
  double scale = 1;
  std::optional<double> softcap{};
  std::vector<double> slopes{};  // of each head, for a query at p and a key at s (ALiBi); empty: none
};

// Which keys a query sees. The query at position p of its sequence sees keys s of theirs with s <= p + offset (causal),
// or p + offset - left <= s <= p + offset + right (window), and of these the first `keys`. other: weights of 0 show it.
enum class MaskType : uint8_t { none, causal, window, other };
constexpr auto enum_names(MaskType) {
  return std::to_array<EnumName<MaskType>>({{"none", MaskType::none},
                                            {"causal", MaskType::causal},
                                            {"window", MaskType::window},
                                            {"other", MaskType::other}});
}
struct HEED_API Mask {
  MaskType type{MaskType::none};
  int64_t offset = 0;
  std::optional<int64_t> left{}, right{};  // of a window; absent: without end
  std::optional<int64_t> keys{};           // what follows is padding

  bool sees(int64_t query, int64_t key) const;  // positions; of `other`, true
};

// The state whose query it is, and which: the one before a token was read (prev), or after it (current).
enum class FeedTime : uint8_t { prev, current };
constexpr auto enum_names(FeedTime) {
  return std::to_array<EnumName<FeedTime>>({{"prev", FeedTime::prev}, {"current", FeedTime::current}});
}
struct Feed {
  std::string state{};  // the path of a States
  FeedTime at{FeedTime::current};
};

struct Additive {
  Ref w{};  // [heads,D]
};

struct RowStats {
  Ref entropy{}, max{};      // [heads,T]: entropy in nats
  double row_sum_error = 0;  // how far the sum of a row's weights is from 1, at most
};

// The strongest keys of each row [heads,T,k], the strongest first; kNoKey, with weight 0, where it sees fewer.
struct Top {
  Ref keys{}, weights{};
};

// One head's weights pooled to a map [M,N] over `queries` x `keys` tokens: cell (i, j) is the mean, or the maximum,
// over queries [i queries / M, (i + 1) queries / M) and keys alike, rounded down. Masked pairs count as 0.
struct HeadMap {
  int64_t head = 0;
  Ref mean{}, max{};
};
struct Pooled {
  int64_t queries = 0, keys = 0;  // the first ones of q and k
  std::vector<HeadMap> maps{};
  Ref received{};  // [heads,keys]: the sum of what the queries give to each key
};

// What any part of a long head can be computed from: weight = exp(score - lse), which differs from the exact weight by
// at most `error`.
struct Tile {
  int64_t head = 0;
  Ref q{}, k{};  // [T,D], [S,D]
  Ref lse{};     // [T]
  double error = 0;
};

// One attention layer over the tokens of one hypothesis: T queries, S keys.
struct Attention {
  std::string id{};
  std::string path{};   // "decoder.0.cross"
  std::string stack{};  // "decoder"
  int64_t layer = 0;
  Role role{Role::self};
  std::vector<int64_t> heads{};      // those that were recorded
  std::vector<int64_t> key_heads{};  // for each of them, which one of K and V is its own
  Span q{}, k{};
  Score score{};
  Mask mask{};
  Ref weights{};      // [heads,T,S]: 0 where masked
  Ref lse{};          // [heads,T]: natural log-sum-exp of the scores; 0 where a row sees nothing
  Ref Q{}, K{}, V{};  // [heads,T,D], [n,S,D], [n,S,Dv]
  Ref O{};            // [heads,T,Dv]: weights times V, before gate and output projection
  std::optional<Additive> additive{};
  std::optional<Feed> feed{};
  RowStats stats{};
  std::optional<Top> top{};  // of long texts, as are these
  std::optional<Pooled> pooled{};
  std::vector<Tile> tiles{};
};

enum class Direction : uint8_t { forward, backward };
constexpr auto enum_names(Direction) {
  return std::to_array<EnumName<Direction>>({{"forward", Direction::forward}, {"backward", Direction::backward}});
}

// One direction of a recurrent layer: the state after each token.
struct States {
  std::string path{}, stack{}, cell{};  // "encoder.layers.0.forward", "encoder", "gru"
  int64_t layer = 0;
  Direction direction{Direction::forward};
  Span tokens{};
  Ref h{}, c{};                      // [T,H]; c of an LSTM
  std::vector<std::string> names{};  // of the gates
  Ref gates{};                       // [T,gates,H], after their activations
  Ref h0{}, c0{};                    // [H]: what it began from; absent: zeros
};

struct Alternative {
  int64_t id = 0;
  std::string piece{};
  double logprob = 0;
};

// A token that was chosen, or a tag.
struct Step {
  int64_t row = 0;  // the query in whose row it was chosen
  int64_t id = 0;
  std::string piece{};
  double logprob = 0;
  bool forced = false;                      // it was given: a prompt, a prefix
  std::vector<Alternative> alternatives{};  // the most likely ones, itself among them or not
};

// A hypothesis, or the tags of a sentence, or a text that was read.
struct Result {
  std::string seq{};
  std::string text{};
  double logprob = 0;  // of all steps
  double score = 0;    // after the length penalty
  bool finished = true;
  std::vector<Step> steps{};
};

// What came of it, and the hypotheses that ended behind it.
struct Output : Result {
  std::vector<Result> others{};
};

// A word that the model did not read, given as tokens of its sequence, and the change of the explained number that this
// made: measured. None where it cannot be left out.
struct LeftOut {
  Span tokens{};
  std::optional<double> change{};
};
// A head: the gradient of its gate, and the change, measured, where it is off.
struct HeadEffect {
  std::string path{};
  int64_t head = 0;
  double gradient = 0;
  std::optional<double> off{};
};
// What the query of the explained row takes from each key, in all heads of a layer: weights times the sizes of what is
// passed on, and weights times the gradients by them.
struct LinkEffects {
  std::string path{};
  Ref values{}, gradients{};  // [heads,S]
};
// Numbers of each token that was read. Integrated gradients: what is without embeddings, and how far the sum is off.
struct TokenShares {
  Ref source{}, target{};
  std::optional<double> baseline{}, error{};
};

// What one number owes to what: the log-probability of what was chosen in a row, or of that against something else.
// docs/explaining.md has the methods.
struct Effect {
  std::string seq{};
  int64_t row = 0;
  std::string name{};  // "log p(cansado) - log p(cansada)"
  std::optional<int64_t> against{};
  double value = 0;
  std::vector<LeftOut> left_out{};
  std::vector<HeadEffect> heads{};
  std::vector<LinkEffects> links{};
  std::optional<TokenShares> integrated{}, rollout{};
};

struct Model {
  std::string kind{}, task{};                                  // "transformer", "translate"
  int64_t layers = 0;                                          // of attention, that ran
  int64_t heads = 0, kv_heads = 0, width = 0, head_width = 0;  // of the first of these
};

// What is there, and how exact it is.
struct Capture {
  bool full = true;                    // every row of every head that was chosen, whole
  std::vector<std::string> dropped{};  // what is not: "weights of encoder.0.self: 2048 tokens, more than 512"
  std::string precision{"f32"};        // that the model computed in
  double tolerance = 1e-5;             // of what is computed again from Q, K and V; in long texts of each Tile
};

struct HEED_API Trace {
  std::string tool{};
  std::optional<std::string> label{};  // among several that are compared: a model, a gate
  Model model{};
  std::vector<Sequence> sequences{};
  std::vector<Attention> attn{};
  std::vector<States> states{};
  Output output{};
  std::vector<Effect> effects{};
  Capture capture{};
  std::map<std::string, Array> tensors{};

  // These throw Error where there is none.
  const Array& tensor(const Ref&) const;
  std::vector<float> values(const Ref& ref) const { return tensor(ref).values(); }
  const Sequence& sequence(const std::string& id) const;

  // Throws Error where references, ranges or shapes contradict each other.
  void check() const;
};

}  // namespace heed::trace
