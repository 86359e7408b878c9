// SPDX-License-Identifier: Apache-2.0
// Makes dist/page.html (traces) and dist/plot.html (reports): script and style inline, and one place for the data. Nothing
// in them depends on the time, the folder or the machine, so a rebuild gives the same bytes. `node build.mjs --check`
// writes nothing and compares.
import {createHash} from 'node:crypto';
import {readFileSync, writeFileSync, mkdirSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {gzipSync} from 'node:zlib';
import {interpolateCividis, interpolatePuOr} from 'd3-scale-chromatic';
import * as esbuild from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const pages = [
  {name: 'page', entry: 'src/main.tsx', style: 'src/style.css', title: 'heed: what the model looked at', bytes: 150_000, compressed: 50_000},
  {name: 'plot', entry: 'src/plot/main.tsx', style: 'src/plot/style.css', title: 'heed: report', bytes: 50_000, compressed: 20_000},
];

// 256 colours of a ramp as hexadecimal digits, six each.
function table(ramp) {
  return Array.from({length: 256}, (_, i) => {
    const parts = ramp(i / 255).match(/\d+/g).map(Number);
    return parts.map((n) => n.toString(16).padStart(2, '0')).join('');
  }).join('');
}

const common = {bundle: true, minify: true, write: false, charset: 'utf8', legalComments: 'none', absWorkingDir: here, logLevel: 'warning'};
const define = {CIVIDIS: JSON.stringify(table(interpolateCividis)), PUOR: JSON.stringify(table((t) => interpolatePuOr(t)))};
const bundled = async (options) => (await esbuild.build({...common, ...options})).outputFiles[0].text.trim();
const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
const put = (text, name, value) => {
  if (text.split(name).length !== 2) throw new Error(`${name} is there ${text.split(name).length - 1} times, expected once`);
  return text.replace(name, () => value);
};

// The script of a worker is a string of the page's own: from the file system nothing else can be loaded.
define.TILE_WORKER = JSON.stringify(await bundled({entryPoints: ['src/tile_worker.ts'], format: 'iife', target: 'es2020'}));

async function build({entry, style: sheet, title}) {
  const script = await bundled({entryPoints: [entry], format: 'iife', target: 'es2020', jsx: 'automatic', jsxImportSource: 'preact', define});
  const style = await bundled({entryPoints: [sheet]});
  const policy = ["default-src 'none'", `script-src ${hash(script)}`, `style-src ${hash(style)}`, 'img-src blob: data:', 'worker-src blob:',
    "base-uri 'none'", "form-action 'none'"].join('; ');
  let page = readFileSync(join(here, 'src/shell.html'), 'utf8');
  for (const [name, value] of Object.entries({'%POLICY%': policy, '%TITLE%': title, '%STYLE%': style, '%SCRIPT%': script})) page = put(page, name, value);
  if (page.split('@HEED_DATA@').length !== 2) throw new Error('@HEED_DATA@ is not there once: it is where data go');
  return page;
}

for (const one of pages) {
  const page = await build(one), file = join(here, `dist/${one.name}.html`);
  const sizes = {bytes: Buffer.byteLength(page), compressed: gzipSync(page, {level: 9}).length};
  console.log(`${one.name}.html: ${sizes.bytes} bytes, ${sizes.compressed} compressed`);
  for (const name of ['bytes', 'compressed'])
    if (sizes[name] > one[name]) throw new Error(`${one.name}.html has ${sizes[name]} ${name}, expected at most ${one[name]}`);
  if (!process.argv.includes('--check')) {
    mkdirSync(dirname(file), {recursive: true});
    writeFileSync(file, page);
  } else if (readFileSync(file, 'utf8') !== page) {
    console.error(`web/dist/${one.name}.html is not what web/src gives, expected the same: npm run build, and commit it`);
    process.exitCode = 1;
  }
}
