// SPDX-License-Identifier: Apache-2.0
// Makes dist/page.html: script and style inline, and one place for the traces. Nothing in it depends on the time, the
// folder or the machine, so a rebuild gives the same bytes. `node build.mjs --check` writes nothing and compares.
import {createHash} from 'node:crypto';
import {readFileSync, writeFileSync, mkdirSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {gzipSync} from 'node:zlib';
import {interpolateCividis, interpolatePuOr} from 'd3-scale-chromatic';
import * as esbuild from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const most = {bytes: 150_000, compressed: 50_000};  // of the shell

// 256 colours of a ramp as hexadecimal digits, six each.
function table(ramp) {
  return Array.from({length: 256}, (_, i) => {
    const parts = ramp(i / 255).match(/\d+/g).map(Number);
    return parts.map((n) => n.toString(16).padStart(2, '0')).join('');
  }).join('');
}

const common = {bundle: true, minify: true, write: false, charset: 'utf8', legalComments: 'none', absWorkingDir: here, logLevel: 'warning'};
const script = (await esbuild.build({
  ...common,
  entryPoints: ['src/main.tsx'],
  format: 'iife',
  target: 'es2020',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  define: {CIVIDIS: JSON.stringify(table(interpolateCividis)), PUOR: JSON.stringify(table((t) => interpolatePuOr(t)))},
})).outputFiles[0].text.trim();
const style = (await esbuild.build({...common, entryPoints: ['src/style.css']})).outputFiles[0].text.trim();

const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
const policy = ["default-src 'none'", `script-src ${hash(script)}`, `style-src ${hash(style)}`, 'img-src blob: data:',
  "base-uri 'none'", "form-action 'none'"].join('; ');
const put = (text, name, value) => {
  if (text.split(name).length !== 2) throw new Error(`${name} is there ${text.split(name).length - 1} times, expected once`);
  return text.replace(name, () => value);
};
let page = readFileSync(join(here, 'src/shell.html'), 'utf8');
page = put(page, '%POLICY%', policy);
page = put(page, '%STYLE%', style);
page = put(page, '%SCRIPT%', script);
if (page.split('@HEED_TRACES@').length !== 2) throw new Error('@HEED_TRACES@ is not there once: it is where traces go');

const sizes = {bytes: Buffer.byteLength(page), compressed: gzipSync(page, {level: 9}).length};
for (const name of ['bytes', 'compressed']) {
  if (sizes[name] > most[name]) throw new Error(`the page has ${sizes[name]} ${name}, expected at most ${most[name]}`);
}
const file = join(here, 'dist/page.html');
if (process.argv.includes('--check')) {
  if (readFileSync(file, 'utf8') !== page) {
    console.error('web/dist/page.html is not what web/src gives, expected the same: npm run build, and commit it');
    process.exit(1);
  }
} else {
  mkdirSync(dirname(file), {recursive: true});
  writeFileSync(file, page);
}
console.log(`page.html: ${sizes.bytes} bytes, ${sizes.compressed} compressed`);
