#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Formats the sources in place; with --check, changes nothing and fails if something would change.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Versions of clang-format disagree in details; the sources follow this one.
expected=14
folders=()
for folder in heed cli bench examples tests fuzz python; do
  if [[ -d $folder ]]; then folders+=("$folder"); fi
done
action=(-i)
if [[ ${1:-} == --check ]]; then
  action=(--dry-run -Werror)
  version=$(clang-format --version | grep -oP 'version \K[0-9]+')
  if [[ $version != "$expected" ]]; then
    echo "skipped: the sources follow clang-format $expected, this is $version"
    exit 77
  fi
fi
find "${folders[@]}" \( -name '*.h' -o -name '*.cc' \) -print0 | xargs -0 clang-format "${action[@]}"
