// SPDX-License-Identifier: Apache-2.0
// The pictures of docs/lab.md, the first plot of each experiment's page, of what 'heed lab all --out DIR' has written:
//   node test/plots.mjs <chromium> <DIR> ../docs/lab
import {existsSync, readdirSync} from 'node:fs';
import {join} from 'node:path';
import {close, link, start} from './harness.mjs';

const [program, folder, out] = process.argv.slice(2);
if (!out) {
  console.error('plots.mjs: expected a browser, the folder of the experiments and a folder for the pictures');
  process.exit(2);
}
const {browser, open, problems} = await start(program, out);
for (const name of readdirSync(folder)) {
  const file = join(folder, name, 'index.html');
  if (!existsSync(file)) continue;
  const page = await open(link(file), {width: 900});
  const plot = page.locator('.plot').first();
  const [picture] = await Promise.all([page.waitForEvent('download'), plot.getByText('SVG', {exact: true}).click()]);
  await picture.saveAs(join(out, `${name}.svg`));
  await close(page);
}
await browser.close();
if (problems.length) console.error(problems.join('\n'));
process.exit(problems.length ? 1 : 0);
