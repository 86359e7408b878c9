// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kinds of sentences, each drawn at random as a tree that makes sense. A draw may come to nothing (no noun is left
// that fits), and is then repeated from the start.
#include <optional>
#include <string_view>

#include "heed/grammar/drawer.h"
#include "heed/grammar/frames.h"

namespace heed::grammar {

using Drawn = std::optional<Tree>;

// patterns_plain.cc
Drawn draw_action(Drawer& draw);        // The boy ate two apples in the garden. The bird flies over the lake.
Drawn draw_description(Drawer& draw);   // The street isn't wide. The book is on the table.
Drawn draw_question(Drawer& draw);      // Did the boy eat the apple? Is the street wide?
Drawn draw_relative(Drawer& draw);      // The dog that ate the bread slept. The bread that the dog ate was hard.
Drawn draw_coordination(Drawer& draw);  // The boy and the girl bought the apple.

// patterns_pronoun.cc
Drawn draw_reason(Drawer& draw);    // The animal didn't cross the street because it was too tired.
Drawn draw_errand(Drawer& draw);    // The boy put the apple in the box and closed it.
Drawn draw_location(Drawer& draw);  // The apple was in the box and the boy ate it.
Drawn draw_sequence(Drawer& draw);  // The boy bought the apple and ate it. She sold it because she hated it.

// One of all of these.
Tree draw_tree(Rng& rng);

}  // namespace heed::grammar
