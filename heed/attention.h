#pragma once
// Attention alone, and all that its users call: the fused kernels, forward, backward and observed; masks, dropout, keys
// and values in 16 bits or in blocks; the views, workspace and threads that they are given, and the error they throw.
// This is what heed::attention and pkg-config's heed-attention give, with Highway and threads below it and nothing
// else. Not here: tensors, gradients on a tape, layers, models (heed/heed.h).
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
