// SPDX-License-Identifier: Apache-2.0
// docs/weights.md lists the names of all parameters, and shows code of an example. This reads the page: every name in
// it exists, every name that exists is in it, and the code is that of the example.
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "heed/models/options.h"
#include "heed/models/recurrent_testing.h"

namespace heed::models {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(HEED_SOURCE_DIR "/" + path);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// "{a,b}.{i}.c" as {"a.{i}.c", "b.{i}.c"}.
std::vector<std::string> alternatives(const std::string& pattern) {
  for (size_t open = pattern.find('{'); open != pattern.npos; open = pattern.find('{', open + 1)) {
    const size_t close = pattern.find('}', open);
    std::istringstream choices(pattern.substr(open + 1, close - open - 1));
    if (choices.str() == "i") continue;
    std::vector<std::string> all;
    for (std::string choice; std::getline(choices, choice, ',');) {
      for (std::string& one : alternatives(pattern.substr(0, open) + choice + pattern.substr(close + 1))) {
        all.push_back(std::move(one));
      }
    }
    return all;
  }
  return {pattern};
}

// The names in the first column of the tables below the heading of a family.
std::set<std::string> names_on_the_page(const std::string& family) {
  std::set<std::string> names;
  bool inside = false;
  for (const std::string& line : lines_of(text_of("docs/weights.md"))) {
    if (line.starts_with("#")) inside = line == "### `" + family + "`";
    if (!inside || !line.starts_with("| `")) continue;
    for (const std::string& name : alternatives(line.substr(3, line.find('`', 3) - 3))) names.insert(name);
  }
  return names;
}

// The names of all models with these options, numbers replaced by {i}.
template <class Net, class Options>
std::set<std::string> names_of_models(const std::vector<Options>& every) {
  std::set<std::string> names;
  const std::regex number(R"(\.[0-9]+\.)");
  for (const Options& options : every) {
    Net net(options, nn::Init::none());
    visit_parameters(net, [&](const std::string& name, Parameter&) {
      names.insert(std::regex_replace(std::regex_replace(name, number, ".{i}."), number, ".{i}."));
    });
  }
  return names;
}

TEST(WeightsPage, HasTheNamesOfAllParametersAndNoOthers) {
  EXPECT_EQ(names_on_the_page("transformer"), names_of_models<Transformer>(testing::every_kind()));
  std::vector<RnnSeq2SeqOptions> recurrent = testing::every_rnn_seq2seq();
  for (const RnnSeq2SeqOptions& o : testing::every_rnn_of_parts()) recurrent.push_back(o);
  EXPECT_EQ(names_on_the_page("rnn_seq2seq"), names_of_models<RnnSeq2Seq>(recurrent));
  EXPECT_EQ(names_on_the_page("self_attentive"), names_of_models<SelfAttentive>(testing::every_self_attentive()));
}

// Indented as on the page.
std::string without_indent(const std::string& text) {
  std::string all;
  for (const std::string& line : lines_of(text)) {
    const size_t begin = line.find_first_not_of(' ');
    if (begin != line.npos) all += line.substr(begin) + "\n";
  }
  return all;
}

TEST(WeightsPage, HasCodeThatIsInAProgram) {
  const std::string programs =
      without_indent(text_of("examples/bert_states.cc") + text_of("tests/parity/model_parity_test.cc"));
  std::string block;
  bool inside = false;
  int blocks = 0;
  for (const std::string& line : lines_of(text_of("docs/weights.md"))) {
    if (!inside && line == "```cpp") {
      inside = true, block.clear();
    } else if (inside && line == "```") {
      inside = false, ++blocks;
      EXPECT_NE(programs.find(without_indent(block)), programs.npos) << block;
    } else if (inside) {
      block += line + "\n";
    }
  }
  EXPECT_GE(blocks, 4);
}

}  // namespace
}  // namespace heed::models
