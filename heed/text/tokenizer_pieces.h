// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text to words or characters and back, as strings. Text goes in as prepared() gives it.
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed::text {

// What stands between spaces, without the punctuation in and around it: "Yes, (I'm) 3.5!" is ▁Yes , ▁( I'm ) ▁3.5 !
// A piece that a space stood before begins with a block. An apostrophe or hyphen between letters or digits belongs to
// the word, and so does a point or comma between digits. A block in the text is punctuation, so that it stands alone.
std::vector<std::string> split_words(std::string_view text);
std::string join_words(std::span<const std::string_view> pieces);

// One piece a character. A space is a block, a block is two.
std::vector<std::string> split_characters(std::string_view text);
std::string join_characters(std::span<const std::string_view> pieces);

}  // namespace heed::text
