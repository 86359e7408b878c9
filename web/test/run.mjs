// SPDX-License-Identifier: Apache-2.0
// node test/run.mjs <folder of traces>: bundles the unit tests and runs them with Node's own runner.
import {spawnSync} from 'node:child_process';
import {mkdtempSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {dirname, join, resolve} from 'node:path';
import {fileURLToPath} from 'node:url';
import * as esbuild from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const folder = process.argv[2];
if (!folder) {
  console.error('run.mjs: expected a folder of traces, as trace_samples writes them');
  process.exit(2);
}
const to = mkdtempSync(join(tmpdir(), 'heed-web-'));
try {
  await esbuild.build({entryPoints: [join(here, 'unit.test.ts')], bundle: true, platform: 'node', format: 'esm', outfile: join(to, 'unit.test.mjs'),
    define: {CIVIDIS: JSON.stringify('0'.repeat(1536)), PUOR: JSON.stringify('0'.repeat(1536)), TILE_WORKER: '""'}, logLevel: 'warning', jsx: 'automatic', jsxImportSource: 'preact'});
  const done = spawnSync(process.execPath, ['--test', join(to, 'unit.test.mjs')], {stdio: 'inherit', env: {...process.env, HEED_TRACES: resolve(folder)}});
  process.exitCode = done.status ?? 1;
} finally {
  rmSync(to, {recursive: true});
}
