// SPDX-License-Identifier: Apache-2.0
// The pictures of the README, of the page that ./dev demo ends with:
//   node test/pictures.mjs <chromium> ../build/demo/page.html ../docs/images
// The page in the binary is taken: build heed_cli after a change of web/dist.
import {join} from 'node:path';
import {close, link, start} from './harness.mjs';

const [program, file, out] = process.argv.slice(2);
if (!out) {
  console.error('pictures.mjs: expected a browser, the page of the demo and a folder');
  process.exit(2);
}
const kWidth = 1180;
// What is seen, and the last thing that belongs to the picture.
const pictures = {'page-compare': ['#view=compare', '.pair'], 'page-effect': ['#view=effect', 'main .readout']};
const {browser, open, problems} = await start(program, out);
for (const [name, [hash, last]] of Object.entries(pictures)) {
  const page = await open(link(file, hash), {width: kWidth});
  await page.waitForTimeout(200);
  const box = await page.locator(last).boundingBox();
  await page.screenshot({path: join(out, `${name}.png`), fullPage: true, clip: {x: 0, y: 0, width: kWidth, height: Math.ceil(box.y + box.height + 8)}});
  await close(page);
}
await browser.close();
if (problems.length) console.error(problems.join('\n'));
process.exit(problems.length ? 1 : 0);
