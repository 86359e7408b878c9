// SPDX-License-Identifier: Apache-2.0
#pragma once
// HEED_API marks what a program outside the library may call; everything else is hidden in the shared library.
#define HEED_API __attribute__((visibility("default")))
