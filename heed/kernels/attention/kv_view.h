#pragma once
// KvView: keys or values as attention reads them, [B,Hk,S,D]: f32 and strided for now. Caches, beams and paged memory
// come through this one type, so that a kernel asks it for blocks of rows and never assumes how they are stored.
#include "heed/base/view.h"

namespace heed::kernels {

class KvView {
 public:
  KvView() = default;
  KvView(View<const float, 4> rows) : rows_(rows) {}  // NOLINT(google-explicit-constructor)
  KvView(View<float, 4> rows) : rows_(rows) {}        // NOLINT(google-explicit-constructor)

  const Dims<4>& shape() const { return rows_.shape(); }
  int64_t shape(size_t i) const { return rows_.shape(i); }
  const Dims<4>& strides() const { return rows_.strides(); }
  bool empty() const { return rows_.empty(); }

  const View<const float, 4>& rows() const { return rows_; }

 private:
  View<const float, 4> rows_;
};

}  // namespace heed::kernels
