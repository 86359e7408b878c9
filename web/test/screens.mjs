// SPDX-License-Identifier: Apache-2.0
// Screenshots of a page in all its views, at 1280 and 390 px, light and dark:
//   node test/screens.mjs <chromium> <page.html> <folder> [<view>,<view> [<#link>]]
import {basename} from 'node:path';
import {kViews, start} from './harness.mjs';

const [program, file, out, views, hash = ''] = process.argv.slice(2);
if (!out) {
  console.error('screens.mjs: expected a browser, a page and a folder');
  process.exit(2);
}
const {browser, shootAll, problems} = await start(program, out);
await shootAll(basename(file, '.html'), file, views === undefined ? kViews : views.split(',').filter(Boolean), hash);
await browser.close();
if (problems.length) console.error(problems.join('\n'));
process.exit(problems.length ? 1 : 0);
