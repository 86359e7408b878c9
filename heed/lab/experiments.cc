// SPDX-License-Identifier: Apache-2.0
#include "heed/lab/experiments.h"

#include "heed/base/error.h"
#include "heed/io/nearest.h"

namespace heed::lab {

std::span<const Experiment> experiments() {
  static const std::vector<Experiment> all{
      scale(),       //
      order(),       //
      peek(),        //
      matrix(),      //
      cache(),       //
      bottleneck(),  //
      distance(),    //
  };
  return all;
}

const Experiment& experiment_named(const std::string& name) {
  std::vector<std::string> names;
  for (const Experiment& one : experiments()) {
    if (one.name == name) return one;
    names.push_back(one.name);
  }
  const auto meant = io::nearest(name, names);
  throw Error("experiment '" + name + "' is not there" + (meant ? ", did you mean '" + *meant + "'?" : ""));
}

}  // namespace heed::lab
