// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arrays of files as Tensors, and Tensors as what files are written from. Files hold more than Tensors do, in type and
// in rank: what does not fit throws Error, with the name of the array, what it is and what was expected.
#include <optional>
#include <string>

#include "heed/base/export.h"
#include "heed/io/npy.h"
#include "heed/io/safetensors.h"
#include "heed/tensor/tensor.h"

namespace heed::io {

// The dtype whose numbers are the same bits; none for what Tensors do not hold.
HEED_API std::optional<DType> dtype_of(ElementType);
HEED_API ElementType element_type_of(DType);

// At most 4 dimensions. `name` is what messages call the array: "tensor 'w'".
HEED_API heed::Shape tensor_shape(const Shape&, const std::string& name);

// A copy, in the array's own type: F32, F64, BF16, F16 or I32.
HEED_API Tensor to_tensor(const TensorEntry&);
HEED_API Tensor to_tensor(const NpyArray&);

// A copy in another type. Floating ones from any real number, each rounded once to the nearest, and from integers,
// which go through f64 on their way to 16 bits; i32 from integers that fit.
HEED_API Tensor to_tensor(const TensorEntry&, DType);
HEED_API Tensor to_tensor(const NpyArray&, DType);

// Borrows the numbers: the tensor has to live as long as the entry.
HEED_API TensorEntry entry_of(std::string name, const Tensor&);
HEED_API NpyArray npy_of(const Tensor&);  // a copy; npy has no bf16, so that writing one throws

}  // namespace heed::io
