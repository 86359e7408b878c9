// SPDX-License-Identifier: Apache-2.0
#pragma once
// ModelOptions: the options of one family of models, whichever it is. As JSON it names the family and has that family's
// options alone:
//
//   {"family": "transformer", "transformer": {"kind": "encoder-decoder", ...}}
//
// Not here: the models themselves (model.h), and the options that heed has names for (presets.h).
#include <concepts>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "heed/base/describe.h"
#include "heed/base/error.h"
#include "heed/base/export.h"
#include "heed/models/rnn_seq2seq.h"
#include "heed/models/self_attentive.h"
#include "heed/models/transformer.h"

namespace heed::models {

// What a model computes: logits of the next token of a translation (translate) or of a text (language); of a tag for
// each token of the source (tag); of a class for the whole source (classify); or hidden states of the source (encode).
enum class Task : uint8_t { translate, language, tag, classify, encode };

namespace detail {

// The alternatives of ModelOptions::family, in their order, as JSON names them.
enum class Family : uint8_t { transformer, rnn_seq2seq, self_attentive };

constexpr auto enum_names(Family) {
  return std::to_array<EnumName<Family>>({{"transformer", Family::transformer},
                                          {"rnn_seq2seq", Family::rnn_seq2seq},
                                          {"self_attentive", Family::self_attentive}});
}

}  // namespace detail

template <class T>
concept FamilyOptions =
    std::same_as<T, TransformerOptions> || std::same_as<T, RnnSeq2SeqOptions> || std::same_as<T, SelfAttentiveOptions>;

// A variant of the families' options.
struct ModelOptions {
  using Families = std::variant<TransformerOptions, RnnSeq2SeqOptions, SelfAttentiveOptions>;
  Families family{};

  ModelOptions() = default;
  template <FamilyOptions T>
  // NOLINTNEXTLINE(google-explicit-constructor): options of a family are options of a model
  ModelOptions(T own) : family(std::move(own)) {}

  template <FamilyOptions T>
  bool is() const {
    return std::holds_alternative<T>(family);
  }
  // Throws Error where they are of another family.
  template <FamilyOptions T>
  const T& as() const {
    if (const T* own = std::get_if<T>(&family)) return *own;
    throw Error("model: options are those of " + family_name() + ", expected those of " +
                ModelOptions(T{}).family_name());
  }
  template <FamilyOptions T>
  T& as() {
    return const_cast<T&>(std::as_const(*this).template as<T>());
  }
  std::string family_name() const {  // "transformer", as JSON has it
    return std::string(enum_names(detail::Family{})[family.index()].name);
  }

  static void describe(ModelOptions& o, auto&& field) {
    const size_t before = o.family.index();
    auto chosen = static_cast<detail::Family>(before);
    field("family", chosen, "which kind of model");
    if (static_cast<size_t>(chosen) != before) o.family = default_options(chosen);
    const std::string name = o.family_name();
    std::visit([&](auto& own) { field(name, own, "options of this family"); }, o.family);
  }

 private:
  static Families default_options(detail::Family family) {
    if (family == detail::Family::rnn_seq2seq) return RnnSeq2SeqOptions{};
    if (family == detail::Family::self_attentive) return SelfAttentiveOptions{};
    return TransformerOptions{};
  }
};

HEED_API Task task_of(const ModelOptions&);

}  // namespace heed::models
