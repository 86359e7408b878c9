// SPDX-License-Identifier: Apache-2.0
#pragma once
// The attention library, in one include: the fused kernels (forward, backward, observers), masks, dropout, keys and
// values in 16 bits or in pages, and what the kernels take: views, a workspace, a thread pool. It is what the CMake
// target heed::attention and pkg-config's heed-attention link, and depends on Highway and threads alone.
// Not here: tensors, autograd, layers, models (heed/heed.h).
#include "heed/base/error.h"
#include "heed/base/parallel.h"
#include "heed/base/view.h"
#include "heed/base/workspace.h"
#include "heed/kernels/attention/attention.h"
#include "heed/kernels/attention/dropout.h"
#include "heed/kernels/attention/kv_view.h"
#include "heed/kernels/attention/mask.h"
#include "heed/kernels/attention/observe.h"
#include "heed/kernels/attention/targets.h"
