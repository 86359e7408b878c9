#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The pages of web/: run.sh build | unit <trace_samples> | browser <trace_samples> <heed> <folder for screenshots>
#   build    a rebuild gives the committed web/dist, to the byte
#   unit     their functions, on traces of every family
#   browser  the pages in Chromium, on a model that is trained for it
# Exit code 77: skipped, as Node, its packages or Chromium are missing. ./dev setup web installs them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../web"

skip() {
  printf 'SKIPPED: %s; ./dev setup web installs what is missing\n' "$*"
  exit 77
}

command -v node >/dev/null || skip "there is no Node"
(($(node -p 'process.versions.node.split(".")[0]') >= 18)) || skip "Node is $(node --version), expected 18 or later"
command -v npm >/dev/null || skip "there is no npm"

# Packages as package-lock.json has them; one of several tests at a time fetches them.
exec 9>package.lock.tmp
flock 9
if [[ ! node_modules/.package-lock.json -nt package-lock.json ]]; then
  npm ci --no-fund --no-audit >npm.log.tmp 2>&1 || skip "npm ci could not fetch packages (web/npm.log.tmp)"
  touch node_modules/.package-lock.json
fi
flock -u 9

temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT

case $1 in
  build)
    npx --no-install tsc --noEmit
    node build.mjs --check
    ;;
  unit)
    "$2" "$temporary"
    node test/run.mjs "$temporary"
    ;;
  browser)
    chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "there is no Chromium"
    mkdir "$temporary/traces"
    "$2" "$temporary/traces"
    "$3" corpus --pairs 3000 --seed 1 --split "$temporary/corpus" >/dev/null
    "$3" train --data "$temporary/corpus/train.tsv" --dev "$temporary/corpus/dev.tsv" --out "$temporary/model" \
      --preset transformer-tiny --tokenizer words --steps 120 --batch-tokens 1024 --rate 0.004 --warmup 20 --dropout 0 \
      >"$temporary/train.log" 2>&1 || { cat "$temporary/train.log"; exit 1; }
    node test/browser.mjs "$chromium" "$3" "$temporary/model" "$temporary/traces" "$4"
    ;;
  *)
    echo "run.sh: expected build, unit or browser, not '$1'"
    exit 2
    ;;
esac
