// SPDX-License-Identifier: Apache-2.0
// Opens a model folder and translates a line. See examples/train.cc for where the folder comes from.
#include <heed/heed.h>

#include <cstdio>

int main(int, char** argv) {
  const heed::Translator translator(argv[1]);
  std::puts(translator.translate(argv[2]).text.c_str());
}
