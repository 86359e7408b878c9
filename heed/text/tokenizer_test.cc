// SPDX-License-Identifier: Apache-2.0
#include "heed/text/tokenizer.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <unordered_map>
#include <vector>

#include "heed/base/file.h"
#include "heed/base/testing.h"
#include "heed/text/utf8.h"

namespace heed::text {
namespace {

using heed::testing::error_of;
using heed::testing::TemporaryFolder;
using heed::testing::text_of;
using Strings = std::vector<std::string>;

constexpr TokenizerKind kKinds[] = {TokenizerKind::words, TokenizerKind::characters, TokenizerKind::unigram,
                                    TokenizerKind::bpe};

const Strings& corpus() {
  static const Strings lines = [] {
    const Strings nouns = {"animal", "street", "children", "Library", "señor", "mañana", "apple"};
    const Strings ends = {"was tired.", "didn't sleep!", "is well-known, really?", "costs 3.5 euros (or 1,250).",
                          "¿quién sabe?"};
    Strings result;
    for (const std::string& noun : nouns) {
      for (const std::string& other : nouns) {
        for (const std::string& end : ends) result.push_back("The " + noun + " of the " + other + " " + end);
      }
    }
    return result;
  }();
  return lines;
}

// Words need more than fifty pieces for these lines; unigram finds no more than 56 in their small letters.
std::unique_ptr<Tokenizer> trained(TokenizerKind kind, bool lowercase = false) {
  const int64_t vocabulary = kind == TokenizerKind::words ? 100 : 50;
  return train_tokenizer(corpus(), {.kind = kind, .vocabulary = vocabulary, .lowercase = lowercase});
}

Strings pieces_of(const Tokenizer& tokenizer, std::string_view text) {
  Strings pieces;
  for (const int32_t id : tokenizer.encode(text)) pieces.push_back(tokenizer.piece(id));
  return pieces;
}

TEST(Tokenizer, TextComesBack) {
  for (const TokenizerKind kind : kKinds) {
    const auto tokenizer = trained(kind);
    EXPECT_EQ(tokenizer->kind(), kind);
    EXPECT_LE(tokenizer->size(), 100);
    for (const std::string& line : corpus()) ASSERT_EQ(tokenizer->decode(tokenizer->encode(line)), line);
    EXPECT_EQ(tokenizer->decode(tokenizer->encode("  The\t\u00A0animal  was tired. ")), "The animal was tired.");
    EXPECT_TRUE(tokenizer->encode("").empty());
    EXPECT_TRUE(tokenizer->encode(" \t ").empty());
  }
}

TEST(Tokenizer, SpecialIdsAreTheSameInAll) {
  for (const TokenizerKind kind : kKinds) {
    const auto tokenizer = trained(kind);
    EXPECT_EQ(tokenizer->piece(kPad), "<pad>");
    EXPECT_EQ(tokenizer->piece(kBegin), "<s>");
    EXPECT_EQ(tokenizer->piece(kEnd), "</s>");
    EXPECT_EQ(tokenizer->piece(kUnknown), "<unk>");
    std::vector<int32_t> ids = tokenizer->encode("The animal");
    ids.insert(ids.begin(), kBegin);
    ids.insert(ids.end(), {kEnd, kPad, kPad});
    EXPECT_EQ(tokenizer->decode(ids), "The animal");
    const std::vector<int32_t> unknown = tokenizer->encode("The 漢 animal");
    EXPECT_EQ(std::count(unknown.begin(), unknown.end(), kUnknown), 1);
    EXPECT_EQ(tokenizer->decode(unknown), "The <unk> animal");
    // No text reads as a special token.
    for (const int32_t id : tokenizer->encode("<s> </s> <pad>")) EXPECT_GE(id, kUnknown);
  }
}

TEST(Tokenizer, LowercaseIsKeptInTheFile) {
  const TemporaryFolder folder;
  for (const TokenizerKind kind : kKinds) {
    const auto tokenizer = trained(kind, true);
    tokenizer->save(folder.file("t"));
    const auto loaded = load_tokenizer(folder.file("t"));
    EXPECT_EQ(loaded->decode(loaded->encode("THE SEÑOR WAS TIRED.")), "the señor was tired.");
  }
}

TEST(Tokenizer, LoadsWhatItSaved) {
  const TemporaryFolder folder;
  for (const TokenizerKind kind : kKinds) {
    const auto tokenizer = trained(kind);
    tokenizer->save(folder.file("t"));
    const auto loaded = load_tokenizer(folder.file("t"));
    EXPECT_EQ(loaded->kind(), kind);
    ASSERT_EQ(loaded->size(), tokenizer->size());
    for (int32_t id = 0; id < loaded->size(); ++id) EXPECT_EQ(loaded->piece(id), tokenizer->piece(id));
    for (const std::string& line : corpus()) EXPECT_EQ(loaded->encode(line), tokenizer->encode(line));
    loaded->save(folder.file("u"));
    EXPECT_EQ(read_file(folder.file("u"), 1 << 20), read_file(folder.file("t"), 1 << 20));
  }
}

TEST(Tokenizer, TheSameLinesGiveTheSameBytes) {
  const TemporaryFolder folder;
  for (const TokenizerKind kind : kKinds) {
    trained(kind)->save(folder.file("a"));
    trained(kind)->save(folder.file("b"));
    EXPECT_EQ(read_file(folder.file("a"), 1 << 20), read_file(folder.file("b"), 1 << 20));
  }
}

TEST(Tokenizer, WordsStandApartFromPunctuation) {
  const Strings lines = {"Yes, (I'm) well-known 3.5 ▁x▁ «¡No!» 1,250."};
  const auto tokenizer = train_tokenizer(lines, {.kind = TokenizerKind::words});
  EXPECT_EQ(pieces_of(*tokenizer, lines[0]), (Strings{"▁Yes", ",", "▁(", "I'm", ")", "▁well-known", "▁3.5", "▁▁", "x",
                                                      "▁", "▁«", "¡", "No", "!", "»", "▁1,250", "."}));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(lines[0])), lines[0]);
}

TEST(Tokenizer, CharactersShowSpaceAsABlock) {
  const Strings lines = {"a é▁"};
  const auto tokenizer = train_tokenizer(lines, {.kind = TokenizerKind::characters});
  EXPECT_EQ(pieces_of(*tokenizer, lines[0]), (Strings{"a", "▁", "é", "▁▁"}));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(lines[0])), lines[0]);
}

TEST(Tokenizer, FrequentPiecesComeFirstThenSpelling) {
  const Strings lines = {"b b b a c", "a c d"};
  const auto tokenizer = train_tokenizer(lines, {.kind = TokenizerKind::words, .vocabulary = 7});
  ASSERT_EQ(tokenizer->size(), 7);
  EXPECT_EQ(tokenizer->piece(4), "▁b");
  EXPECT_EQ(tokenizer->piece(5), "▁a");
  EXPECT_EQ(tokenizer->piece(6), "▁c");
  EXPECT_EQ(tokenizer->encode("d"), std::vector<int32_t>{kUnknown});
}

// Any text over letters, spaces, punctuation, blocks and wide characters, with a tokenizer that has seen it.
RC_GTEST_PROP(Tokenizer, AnySeenTextComesBack, ()) {
  const auto character =
      rc::gen::element<std::string>("a", "B", "é", " ", ".", ",", "'", "-", "3", "▁", "¿", "漢", "\t");
  std::string text = "x";
  for (const std::string& one : *rc::gen::container<Strings>(character)) text += one;
  const Strings lines = {text};
  for (const TokenizerKind kind : {TokenizerKind::words, TokenizerKind::characters}) {
    const auto tokenizer = train_tokenizer(lines, {.kind = kind});
    RC_ASSERT(tokenizer->decode(tokenizer->encode(text)) == squeeze_spaces(text));
  }
}

TEST(Tokenizer, RejectsWhatCannotBeLearnt) {
  const auto error = [](const Strings& lines, TokenizerKind kind, int64_t vocabulary) {
    return error_of([&] { train_tokenizer(lines, {.kind = kind, .vocabulary = vocabulary}); });
  };
  for (const TokenizerKind kind : kKinds) {
    EXPECT_EQ(error({}, kind, 10), "tokenizer: the text is empty, expected something to learn from");
    EXPECT_EQ(error({"", " "}, kind, 10), "tokenizer: the text is empty, expected something to learn from");
    EXPECT_EQ(error({"a"}, kind, 4), "tokenizer: vocabulary is 4, expected an integer >= 5");
    EXPECT_EQ(error({"a"}, kind, int64_t{1} << 40),
              "tokenizer: vocabulary is 1099511627776, expected at most 2^31 - 1");
    EXPECT_EQ(error({"ok", "\xFF"}, kind, 10), "tokenizer: line 2: byte 1 is 0xff, which is no UTF-8");
  }
  // t h e c a s o n m, the space, and ids 0 to 3.
  for (const TokenizerKind kind : {TokenizerKind::unigram, TokenizerKind::bpe}) {
    EXPECT_EQ(error({"the cat sat on the mat"}, kind, 13),
              "tokenizer: vocabulary is 13, expected at least 14 for this text: one for each of its characters, and 4");
    EXPECT_EQ(error({"the cat sat on the mat"}, kind, 14), "no error");
  }
}

TEST(Tokenizer, AVocabularyShrinksToWhatTheTextAllows) {
  const Strings one = {"the cat sat on the mat"}, shortest = {"a"};
  for (const TokenizerKind kind : {TokenizerKind::automatic, TokenizerKind::unigram, TokenizerKind::bpe}) {
    const auto tokenizer = train_tokenizer(one, {.kind = kind, .vocabulary = 8000});
    EXPECT_GE(tokenizer->size(), 14);
    EXPECT_LE(tokenizer->size(), 35);
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(one[0])), one[0]);
    const auto smallest = train_tokenizer(shortest, {.kind = kind});
    EXPECT_EQ(smallest->decode(smallest->encode("a")), "a");
    const auto larger = train_tokenizer(corpus(), {.kind = kind, .vocabulary = 100000});
    EXPECT_GT(larger->size(), 50);
    EXPECT_LT(larger->size(), 1000);
  }
}

// With a token for each character of the text, words that were never seen come back as well.
TEST(Tokenizer, SubwordsSpellWordsTheyHaveNotSeen) {
  const auto tokenizer = train_tokenizer(corpus(), {.kind = TokenizerKind::automatic});
  EXPECT_EQ(tokenizer->kind(), TokenizerKind::unigram);
  for (const std::string unseen : {"rotten plate", "The hollow trees", "¿Cuándo?"}) {
    const std::vector<int32_t> ids = tokenizer->encode(unseen);
    const bool spelt = unseen != "¿Cuándo?";  // C and á are not in the text
    EXPECT_EQ(std::count(ids.begin(), ids.end(), kUnknown) == 0, spelt) << unseen;
    if (spelt) {
      EXPECT_EQ(tokenizer->decode(ids), unseen);
    }
  }
}

// What is not known keeps its spelling where text is shown beside what a model made of it.
TEST(Tokenizer, SurfaceIsTheTextOfEachToken) {
  const std::string text = "  The 漢字 ANIMAL wasn't tired. ";
  for (const bool lowercase : {false, true}) {
    for (const TokenizerKind kind : kKinds) {
      const auto tokenizer = trained(kind, lowercase);
      const Strings surface = tokenizer->surface(text);
      EXPECT_EQ(surface.size(), tokenizer->encode(text).size());
      std::string joined;
      for (const std::string& one : surface) joined += one;
      EXPECT_EQ(joined, "The漢字ANIMALwasn'ttired.");
    }
  }
  EXPECT_EQ(trained(TokenizerKind::words)->surface("The 漢字 slept."), (Strings{"The", "漢字", "slept", "."}));
}

// On some of these SentencePiece would end the program.
TEST(Tokenizer, CharactersThatSentencePieceKeepsAreSpacesToIt) {
  const std::string mark = "\u2585", zero(1, '\0');
  for (const TokenizerKind kind : {TokenizerKind::unigram, TokenizerKind::bpe}) {
    for (const std::string& line : {mark, zero, mark + " ▁" + zero, std::string("▁ ▁▁")}) {
      EXPECT_EQ(error_of([&] {
                  train_tokenizer({&line, 1}, {.kind = kind});
                }),
                "tokenizer: the text has only characters that SentencePiece keeps for itself");
    }
    const Strings lines = {"ab▁ab" + mark + "ab" + zero + "ab", "▁", mark};
    const auto tokenizer = train_tokenizer(lines, {.kind = kind, .vocabulary = 7});
    EXPECT_EQ(tokenizer->decode(tokenizer->encode("▁ab▁▁ab▁")), "ab ab");
    EXPECT_EQ(tokenizer->decode(tokenizer->encode("ab" + mark)), "ab<unk>");
    EXPECT_TRUE(tokenizer->encode("▁▁").empty());
  }
}

TEST(Tokenizer, RejectsIdsAndBytesThatAreNone) {
  for (const TokenizerKind kind : kKinds) {
    const auto tokenizer = trained(kind);
    const std::string last = std::to_string(tokenizer->size() - 1);
    const std::vector<int32_t> below = {-1}, beyond = {static_cast<int32_t>(tokenizer->size())};
    EXPECT_EQ(error_of([&] { tokenizer->decode(below); }), "tokenizer: id is -1, expected 0 to " + last);
    EXPECT_EQ(error_of([&] { tokenizer->decode(beyond); }),
              "tokenizer: id is " + std::to_string(tokenizer->size()) + ", expected 0 to " + last);
    EXPECT_EQ(error_of([&] { tokenizer->piece(-1); }), "tokenizer: id is -1, expected 0 to " + last);
    EXPECT_EQ(error_of([&] { tokenizer->encode("a\xFF"); }), "text: byte 2 is 0xff, which is no UTF-8");
  }
}

// What load_tokenizer says about a file with these bytes, without the folder's name.
std::string load_error(const std::string& bytes) {
  const TemporaryFolder folder;
  std::ofstream(folder.file("t"), std::ios::binary) << bytes;
  const std::string error = error_of([&] { load_tokenizer(folder.file("t")); });
  return error.starts_with(folder.path() + "/") ? error.substr(folder.path().size() + 1) : error;
}

TEST(Tokenizer, RejectsFilesThatAreNone) {
  const std::string none = "t: is no tokenizer that heed has written, or it is cut short or damaged";
  EXPECT_EQ(load_error(""), none);
  EXPECT_EQ(load_error("hello"), none);
  EXPECT_EQ(load_error(std::string(100, '\0')), none);
  EXPECT_EQ(error_of([] { load_tokenizer("/nowhere/t"); }), "/nowhere/t: cannot open: No such file or directory");

  const std::string head = "heed tokenizer words 1\nlowercase no\n", special = "<pad>\n<s>\n</s>\n<unk>\n";
  EXPECT_EQ(load_error(head + "pieces 5\n" + special + "▁a\n"), "no error");
  EXPECT_EQ(load_error("heed tokenizer words 2\n"),
            "t:1: expected 'heed tokenizer words 1' or 'heed tokenizer characters 1'");
  EXPECT_EQ(load_error("heed tokenizer words 1"), "t:1: the file ends here, expected 'heed tokenizer words 1'");
  EXPECT_EQ(load_error("heed tokenizer words 1\nlowercase 1\n"), "t:2: expected 'lowercase yes' or 'lowercase no'");
  for (const std::string count : {"4", "-5", "", "5x", "99999999999999999999", "five"}) {
    EXPECT_EQ(load_error(head + "pieces " + count + "\n" + special), "t:3: expected 'pieces N' with N above 4");
  }
  EXPECT_EQ(load_error(head + "pieces 9000000000000000000\n" + special),
            "t:8: the file ends here, expected 9000000000000000000 pieces, found 4");
  EXPECT_EQ(load_error(head + "pieces 6\n" + special + "▁a\n▁b"),
            "t:9: the file ends here, expected 6 pieces, found 5");
  EXPECT_EQ(load_error(head + "pieces 5\n" + special + "▁a\n▁b\n"), "t:8: more follows the last of 5 pieces");
  EXPECT_EQ(load_error(head + "pieces 6\n" + special + "▁a\n▁a\n"), "t:9: has the same piece as line 8");
  EXPECT_EQ(load_error(head + "pieces 5\n" + special + "<s>\n"), "t:8: has the same piece as line 5");
  EXPECT_EQ(load_error(head + "pieces 5\n" + special + "\n"), "t:8: is empty, expected a piece");
  EXPECT_EQ(load_error(head + "pieces 5\n" + special + "a b\n"), "t:8: has a space, expected a piece without");
  EXPECT_EQ(load_error(head + "pieces 5\n" + special + "\xFF\n"), "t:8: is no UTF-8");
  EXPECT_EQ(load_error(head + "pieces 5\n<s>\n<pad>\n</s>\n<unk>\na\n"), "t:4: expected '<pad>'");
}

TEST(Tokenizer, RejectsDamagedFiles) {
  const TemporaryFolder folder;
  for (const TokenizerKind kind : kKinds) {
    trained(kind)->save(folder.file("t"));
    const std::string file = text_of(read_file(folder.file("t"), 1 << 20));
    for (size_t size = 0; size < file.size(); size += 1 + file.size() / 20) {
      const std::string error = load_error(file.substr(0, size));
      ASSERT_TRUE(error.starts_with("t:")) << size << ": " << error;
      ASSERT_EQ(error.find('\n'), error.npos);
    }
    if (kind == TokenizerKind::words || kind == TokenizerKind::characters) continue;  // any words will do there
    for (size_t i = 0; i < file.size(); i += 1 + file.size() / 20) {
      std::string flipped = file;
      flipped[i] = static_cast<char>(flipped[i] ^ 0x10);
      ASSERT_NE(load_error(flipped), "no error") << i;
    }
  }
}

// SentencePiece's own trainer, with its usual ids: <unk> 0, <s> 1, </s> 2, and no padding.
std::string foreign_model(const std::string& type, const std::unordered_map<std::string, std::string>& more = {}) {
  std::unordered_map<std::string, std::string> settings = {{"model_type", type},
                                                           {"vocab_size", "300"},
                                                           {"num_threads", "1"},
                                                           {"hard_vocab_limit", "false"},
                                                           {"minloglevel", "3"}};
  for (const auto& [name, value] : more) settings[name] = value;
  struct Lines final : sentencepiece::SentenceIterator {
    bool done() const override { return at == corpus().size(); }
    void Next() override { ++at; }
    const std::string& value() const override { return corpus()[at]; }
    sentencepiece::util::Status status() const override { return {}; }
    size_t at = 0;
  } lines;
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(settings, &lines, &model);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return model;
}

std::unique_ptr<Tokenizer> imported(const TemporaryFolder& folder, const std::string& bytes) {
  std::ofstream(folder.file("their.model"), std::ios::binary) << bytes;
  return import_tokenizer(folder.file("their.model"));
}

TEST(Tokenizer, TakesModelsThatOthersHaveTrained) {
  const TemporaryFolder folder;
  for (const auto& [type, kind] : {std::pair("unigram", TokenizerKind::unigram), {"bpe", TokenizerKind::bpe}}) {
    const std::string model = foreign_model(type);
    const auto tokenizer = imported(folder, model);
    sentencepiece::SentencePieceProcessor theirs;
    ASSERT_TRUE(theirs.LoadFromSerializedProto(model).ok());
    EXPECT_EQ(tokenizer->kind(), kind);
    EXPECT_EQ(tokenizer->size(), theirs.GetPieceSize() + 1) << "theirs has no padding";
    Strings special;
    for (const int32_t id : {kPad, kBegin, kEnd, kUnknown}) special.push_back(tokenizer->piece(id));
    EXPECT_EQ(special, (Strings{"<pad>", "<s>", "</s>", "<unk>"}));
    for (const std::string& line : {corpus().front(), corpus().back()}) {
      Strings pieces;
      ASSERT_TRUE(theirs.Encode(line, &pieces).ok());
      EXPECT_EQ(pieces_of(*tokenizer, line), pieces);
      EXPECT_EQ(tokenizer->decode(tokenizer->encode(line)), line);
    }
    EXPECT_EQ(tokenizer->encode("The \u6f22").back(), kUnknown);
    tokenizer->save(folder.file("ours"));
    const auto loaded = load_tokenizer(folder.file("ours"));
    EXPECT_EQ(loaded->encode(corpus().front()), tokenizer->encode(corpus().front()));
    EXPECT_EQ(import_tokenizer(folder.file("ours"))->size(), tokenizer->size()) << "heed's own file does as well";
  }
}

TEST(Tokenizer, BytesOfAForeignModelBecomeTextAgain) {
  const TemporaryFolder folder;
  const auto tokenizer = imported(folder, foreign_model("bpe", {{"byte_fallback", "true"}, {"vocab_size", "400"}}));
  const std::string line = "The \u6f22 street";
  const std::vector<int32_t> ids = tokenizer->encode(line);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), kUnknown), 0);
  EXPECT_EQ(tokenizer->decode(ids), line);
  const auto byte = std::find_if(ids.begin(), ids.end(), [&](int32_t id) { return tokenizer->piece(id) == "<0xE6>"; });
  ASSERT_NE(byte, ids.end());
  EXPECT_EQ(tokenizer->decode({&*byte, 1}), "\uFFFD") << "a part of a character";
}

TEST(Tokenizer, RejectsModelsThatAreNone) {
  const TemporaryFolder folder;
  const std::string none =
      "their.model: is no tokenizer, expected one of heed's or a unigram or BPE model of SentencePiece";
  const auto error = [&](const std::string& bytes) {
    return error_of([&] { imported(folder, bytes); }).substr(folder.path().size() + 1);
  };
  EXPECT_EQ(error(""), none);
  EXPECT_EQ(error("A file of words.\nAnd more of them, as long as one likes."), none);
  EXPECT_EQ(error(foreign_model("word")), none);
  const std::string model = foreign_model("unigram");
  EXPECT_EQ(error(model.substr(0, model.size() - 1)), none) << "cut short";
}

TEST(Tokenizer, RejectsHugeFiles) {
  const TemporaryFolder folder;
  std::ofstream(folder.file("t")) << "heed tokenizer words 1\n";
  std::filesystem::resize_file(folder.file("t"), uint64_t{1} << 40);
  EXPECT_EQ(error_of([&] { load_tokenizer(folder.file("t")); }),
            folder.file("t") + ": has at least 1099511627776 bytes, expected at most 268435456");
}

}  // namespace
}  // namespace heed::text
