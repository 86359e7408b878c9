// SPDX-License-Identifier: Apache-2.0
// What the tests in the browser share: opening a page while every message and request of it is noted, waiting, screenshots.
// Not here: the tests (browser*.mjs).
import assert from 'node:assert/strict';
import {mkdirSync, readFileSync, writeFileSync} from 'node:fs';
import {dirname, join, resolve} from 'node:path';
import {fileURLToPath, pathToFileURL} from 'node:url';
import {chromium} from 'playwright-core';

export const here = dirname(fileURLToPath(import.meta.url));
export const kViews = ['text', 'walk', 'map', 'heads', 'output', 'effect', 'compare', 'states', 'table'];  // as in src/panel.ts
export const kLooks = [[1280, false], [1280, true], [390, false], [390, true]];  // width, dark
const shell = readFileSync(join(here, '../dist/page.html'), 'utf8');

export const withData = (page, text) => page.replace('@HEED_DATA@', () => text.replace(/</g, '\\u003c'));
export const link = (file, hash = '') => pathToFileURL(resolve(file)).href + hash;
export const close = (page) => page.context().close();
export const sideways = (page) => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);

export async function goTo(page, view) {
  await page.click(`nav button >> nth=${kViews.indexOf(view)}`);
  await page.waitForSelector(`main[data-view=${view}] > *`);
}

// The live region is set after the screen was painted.
export async function says(page, expected) {
  for (let i = 0; i < 50 && !expected.test(await page.textContent('#live')); ++i) await page.waitForTimeout(40);
  assert.match(await page.textContent('#live'), expected);
}

// page.waitForFunction would need a policy that allows eval.
export async function until(page, isSo) {
  for (let i = 0; i < 200 && !(await page.evaluate(isSo)); ++i) await page.waitForTimeout(40);
  assert.ok(await page.evaluate(isSo), `${isSo} did not come true within 8 s`);
}

export async function start(program, out) {
  mkdirSync(out, {recursive: true});
  const browser = await chromium.launch({executablePath: program, args: ['--no-sandbox']});
  const problems = [];
  // A page of its own in a context of its own: nothing but its file may be requested, nothing written to the console.
  async function open(url, {width = 1280, dark = false, motion = 'reduce', contrast} = {}) {
    const context = await browser.newContext({viewport: {width, height: 900}, colorScheme: dark ? 'dark' : 'light', reducedMotion: motion, forcedColors: contrast, acceptDownloads: true});
    const page = await context.newPage();
    page.on('console', (message) => problems.push(`${url}: ${message.text()}`));
    page.on('pageerror', (error) => problems.push(`${url}: ${error.message}`));
    page.on('dialog', (dialog) => { problems.push(`${url}: a dialog '${dialog.message()}'`); void dialog.dismiss(); });
    page.on('request', (request) => { if (request.url().split('#')[0] !== url.split('#')[0] && !request.url().startsWith('blob:')) problems.push(`${url} requests ${request.url()}`); });
    await page.goto(url);
    await page.waitForSelector('#app > *');
    return page;
  }
  function pageOf(name, text) {
    const file = resolve(out, `${name}.html`);
    writeFileSync(file, withData(shell, text));
    return file;
  }
  // What to look at: name-width-theme.png.
  async function shoot(page, name, width, dark) {
    await page.waitForTimeout(60);
    await page.screenshot({path: join(out, `${name}-${width}-${dark ? 'dark' : 'light'}.png`), fullPage: true});
  }
  // A page in all looks, with the views that are named; each must fit into the width of the screen.
  async function shootAll(name, file, views = kViews, hash = '') {
    for (const [width, dark] of kLooks) {
      const page = await open(link(file, hash), {width, dark});
      for (const view of views.length ? views : ['']) {
        if (view) await goTo(page, view);
        await shoot(page, [name, view].filter(Boolean).join('-'), width, dark);
        assert.ok((await sideways(page)) <= 0, `${name} ${view} at ${width}: ${await sideways(page)} px too wide`);
      }
      await close(page);
    }
  }
  return {browser, problems, open, pageOf, shoot, shootAll, out};
}

// Runs them one after the other; HEED_BROWSER_TEST has a part of the names of those that are wanted. Gives how many failed.
export async function run(tests, problems) {
  let failed = 0;
  const only = process.env.HEED_BROWSER_TEST;
  for (const [name, body] of tests.filter(([name]) => !only || name.includes(only))) {
    const begin = Date.now();
    problems.length = 0;
    try {
      await body();
      assert.deepEqual(problems, [], 'messages of the browser');
      console.log(`ok      ${name} (${Date.now() - begin} ms)`);
    } catch (error) {
      ++failed;
      console.log(`FAILED  ${name}\n${error.stack}\n${problems.join('\n')}`);
    }
  }
  return failed;
}
