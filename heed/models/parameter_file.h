// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parameters in safetensors files: heed's own, and those that other programs wrote with names and layouts of theirs.
//
//   load_parameters("model.safetensors", model->parameters(),
//                   {.rename = replace_parts({{"encoder.layer.", "encoder."}, {".attention.self.query.", ".self.q."}}),
//                    .ignore_extra = true});
//
// Tensors in F16, BF16, F32 and F64 are converted to the dtype of the parameters. Names, types and shapes are checked
// before anything is overwritten; that the numbers are finite, as they are read. A matrix may be in I8, each row times
// a number of the tensor '<name>.scale', F32 [rows] (kernels/weight.h). Not here: which options a foreign model needs
// (docs/weights.md).
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "heed/autograd/parameter.h"
#include "heed/base/export.h"
#include "heed/io/safetensors.h"
#include "heed/tensor/tensor.h"

namespace heed::models {

struct LoadOptions {
  // The name of the parameter that a tensor of the file is loaded into; an empty string: none, the tensor is skipped.
  // Without a function the names are the same.
  std::function<std::string(const std::string& tensor)> rename{};
  // Whether a tensor [in,out] of the file has to be transposed to a parameter [out,in].
  std::function<bool(const std::string& tensor)> transpose{};
  bool ignore_extra{false};  // tensors that are for no parameter are left out, too
  // Where the shapes of the parameters come from, for messages: "config.json".
  std::string expected_by{};
};

// What a parameter is before it has numbers.
struct ParameterShape {
  std::string name;
  Shape shape;
};

// A rename function: each first part is replaced by its second, anywhere in a name, in the order of the list.
HEED_API std::function<std::string(const std::string&)> replace_parts(
    std::vector<std::pair<std::string, std::string>> parts);

// A file to load parameters from. Its header has been read, and none of its numbers.
class HEED_API ParameterFile {
 public:
  explicit ParameterFile(const std::string& path);

  // Throws Error where a parameter has no tensor or two, where a tensor has no parameter, and where shapes or element
  // types do not fit. Extents of 1 in front of a tensor's shape do not count: [1,V] is loaded into [V]. Only names and
  // shapes are needed: sizes that a file does not have are found before memory is taken for them.
  void check(const std::vector<ParameterShape>&, const LoadOptions& = {}) const;
  // Throws Error for the same reasons, and for a number that is infinite or NaN.
  void load(const ParameterStore&, const LoadOptions& = {}) const;

 private:
  std::string path_;
  io::SafetensorsFile file_;
};

// The same in one call.
HEED_API void load_parameters(const std::string& path, const ParameterStore&, const LoadOptions& = {});

// Where a file is cut in another way: `source` gives the values of a parameter by its name, in f32 or f64, and returns
// an empty tensor where it has none.
using ParameterSource = std::function<Tensor(const std::string& parameter)>;
HEED_API void load_parameters(const ParameterSource& source, const ParameterStore&);

// Written to a temporary name and renamed. The matrices of these names are rounded to int8, each row with its scale.
HEED_API void save_parameters(const ParameterStore&, const std::string& path,
                              const std::vector<std::string>& int8 = {});

}  // namespace heed::models
