// SPDX-License-Identifier: Apache-2.0
// The page in a real browser: node test/browser.mjs <chromium> <heed> <model> <folder of traces> <folder for screenshots>
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {mkdirSync, readdirSync, readFileSync, writeFileSync} from 'node:fs';
import {dirname, join, resolve} from 'node:path';
import {fileURLToPath, pathToFileURL} from 'node:url';
import {chromium} from 'playwright-core';

const [program, heed, model, samples, out] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url)), shell = readFileSync(join(here, '../dist/page.html'), 'utf8');
const kViews = ['text', 'map', 'heads', 'walk', 'output', 'compare', 'table', 'states'];
mkdirSync(out, {recursive: true});

function pageOf(name, text) {
  const file = resolve(out, `${name}.html`);
  writeFileSync(file, shell.replace('@HEED_DATA@', () => text.replace(/</g, '\\u003c')));
  return file;
}
const link = (file, hash = '') => pathToFileURL(file).href + hash;

const browser = await chromium.launch({executablePath: program, args: ['--no-sandbox']});
const problems = [];
async function open(url, {width = 1280, dark = false, expected = () => false} = {}) {
  const context = await browser.newContext({viewport: {width, height: 900}, colorScheme: dark ? 'dark' : 'light', reducedMotion: 'reduce', acceptDownloads: true});
  const page = await context.newPage();
  page.on('console', (message) => { if (!expected(message.text())) problems.push(`${url}: ${message.text()}`); });
  page.on('pageerror', (error) => problems.push(`${url}: ${error.message}`));
  page.on('dialog', (dialog) => { problems.push(`${url}: a dialog '${dialog.message()}'`); void dialog.dismiss(); });
  page.on('request', (request) => { if (request.url().split('#')[0] !== url.split('#')[0] && !request.url().startsWith('blob:')) problems.push(`${url} asks for ${request.url()}`); });
  await page.goto(url);
  await page.waitForSelector('#app > *');
  return page;
}
const close = (page) => page.context().close();
const sideways = (page) => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
// The live region is set after the screen was painted.
async function says(page, expected) {
  for (let i = 0; i < 50 && !expected.test(await page.textContent('#live')); ++i) await page.waitForTimeout(40);
  assert.match(await page.textContent('#live'), expected);
}
const tests = [];
const test = (name, run) => tests.push([name, run]);

const tired = "The animal didn't cross the street because it was too tired.", wide = tired.replace('tired', 'wide');
const two = resolve(out, 'two.html'), tracePath = resolve(out, 'tired.json');
execFileSync(heed, ['explain', '--model', model, '--beam', '3', '--out', two, '--trace', tracePath, '--compare', wide, tired]);
const trace = JSON.parse(readFileSync(tracePath, 'utf8'));
const one = pageOf('one', readFileSync(tracePath, 'utf8'));

test('every view renders at both widths, light and dark, without scrolling sideways', async () => {
  for (const [width, dark] of [[1280, false], [390, true]]) {
    const page = await open(link(two), {width, dark});
    for (const view of kViews) {
      await page.click(`nav button >> nth=${kViews.indexOf(view)}`);
      await page.waitForSelector(`main[data-view=${view}] > *`);
      await page.waitForTimeout(60);
      assert.ok((await sideways(page)) <= 0, `${view} at ${width}: ${await sideways(page)} px too wide`);
      if (view !== 'states') assert.equal(await page.locator('main .empty').count(), 0, `${view} is empty`);
      await page.screenshot({path: join(out, `${view}-${width}-${dark ? 'dark' : 'light'}.png`), fullPage: true});
    }
    await close(page);
  }
});

test('the text shows the recorded weights, and pointing at a word changes them', async () => {
  const layer = trace.attn.filter((x) => x.role === 'cross' && x.q.seq === 'target').pop(), heads = layer.heads.length;
  const bytes = Buffer.from(trace.tensors[layer.weights].data, 'base64'), [, T, S] = trace.tensors[layer.weights].shape;
  const weight = (h, t, s) => bytes.readFloatLE(4 * ((h * T + t) * S + s));
  const page = await open(link(one, `#view=text&layer=${layer.path}&head=1&merge=false`));
  const shown = () => page.$$eval('.chip.key small', (all) => all.map((x) => x.textContent));
  const expected = (t) => Array.from({length: S}, (_, s) => weight(1, t, s).toFixed(2));
  assert.ok(heads > 1);
  assert.deepEqual(await shown(), expected(0));
  await page.hover('[data-query="1"]');
  assert.deepEqual(await shown(), expected(1));
  await page.mouse.move(5, 5);
  assert.deepEqual(await shown(), expected(0));
  await page.click('[data-query="2"]');
  await page.mouse.move(5, 5);
  assert.deepEqual(await shown(), expected(2), 'a click holds');
  await close(page);
});

test('the walk prints small differences, and a red badge where numbers are not the recorded ones', async () => {
  const layer = trace.attn[0];
  const page = await open(link(one, `#view=walk&layer=${layer.path}&head=0&query=1&step=6`));
  assert.match(await page.textContent('.check'), /^These are the model’s own numbers/);
  assert.equal(await page.locator('.ledger tbody tr').count(), layer.k.end - layer.k.begin);
  for (let step = 1; step <= 6; ++step) {
    await page.click(`.steps button >> nth=${step - 1}`);
    assert.match(await page.textContent('.walk .note h3'), new RegExp(`^${step}\\. `));
  }
  await close(page);
  const wrong = structuredClone(trace), q = Buffer.from(wrong.tensors[layer.Q].data, 'base64');
  for (let i = 0; i < q.length; i += 4) q.writeFloatLE(q.readFloatLE(i) * 3, i);
  wrong.tensors[layer.Q] = {...wrong.tensors[layer.Q], data: q.toString('base64'), crc32: undefined};
  const other = await open(link(pageOf('wrong', JSON.stringify(wrong)), `#view=walk&layer=${layer.path}&head=0&query=1&step=6`));
  assert.match(await other.textContent('.check.bad'), /^These are NOT the model’s numbers/);
  await close(other);
});

test('keys alone go through words, heads, layers and steps, and say what they find', async () => {
  const page = await open(link(one, '#view=map&layer=encoder.0.self&head=0&query=0&key=0'));
  const S = trace.attn[0].k.end;
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowDown');
  await says(page, new RegExp(`encoder.0.self head 0. animal to animal \\S+, rank \\d+ of ${S}`));
  await page.keyboard.press('End');
  await says(page, /animal to <\/s>/);
  await page.keyboard.press('Home');
  await says(page, /animal to The/);
  await page.keyboard.press(']');
  await says(page, /encoder.0.self head 1/);
  await page.keyboard.press('}');
  await says(page, /encoder.1.self head 1/);
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => location.hash.includes('pinned=true'));
  await page.keyboard.press('?');
  assert.equal(await page.locator('dialog[open]').count(), 1);
  await page.keyboard.press('Escape');
  const outline = await page.locator('nav button').nth(3).evaluate((x) => { x.focus({focusVisible: true}); return getComputedStyle(x).outlineStyle; });
  assert.equal(outline, 'solid', 'focus can be seen');
  await page.keyboard.press('Enter');
  await page.waitForSelector('main[data-view=walk]');
  await page.keyboard.press('.');
  assert.match(await page.textContent('.walk .note h3'), /^2\. Score/);
  await page.keyboard.press(',');
  assert.match(await page.textContent('.walk .note h3'), /^1\. Project/);
  await close(page);
});

test('a link restores the view', async () => {
  const hash = '#view=map&layer=decoder.1.cross&head=2&query=3&key=4&pinned=true&merge=false&special=out&scale=sqrt';
  const first = await open(link(one, hash));
  const url = first.url(), readout = await first.textContent('.readout');
  assert.match(await first.textContent('.warn'), /They had \S+ of\s+this row/);
  await close(first);
  const second = await open(url);
  assert.equal(await second.textContent('.readout'), readout);
  assert.equal(await second.locator('.controls select').nth(1).inputValue(), '2');
  await close(second);
});

test('what is masked, zero and not captured differ in pixels', async () => {
  const colours = async (hash) => {
    const page = await open(link(one, hash));
    const found = await page.locator('main canvas.points').evaluate((canvas) => {
      const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      const all = new Set();
      for (let i = 0; i < data.length; i += 4) all.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
      return [...all];
    });
    await close(page);
    return new Set(found);
  };
  const hatch = 0x9AA2A8;  // --hatch of the light theme
  const masked = await colours('#view=map&layer=decoder.0.self&head=0'), none = await colours('#view=map&layer=encoder.0.self&head=0');
  assert.ok([...masked].some((c) => Math.abs((c & 255) - (hatch & 255)) < 40 && !none.has(c)), 'strokes of the mask');
  assert.notDeepEqual(masked, none);
});

test('saved files parse, and have what is on the screen', async () => {
  const page = await open(link(one, '#view=map&layer=decoder.0.self&head=0&merge=false'));
  const save = async (kind) => {
    const [file] = await Promise.all([page.waitForEvent('download'), page.click(`.save button >> text=${kind}`)]);
    return readFileSync(await file.path());
  };
  const svg = (await save('SVG')).toString();
  assert.equal(await page.evaluate((text) => new DOMParser().parseFromString(text, 'image/svg+xml').querySelector('parsererror') === null, svg), true);
  assert.ok(svg.includes('url(#masked)') && svg.includes('linear, 0 to 1'));
  assert.equal((await save('PNG')).subarray(1, 4).toString(), 'PNG');
  const csv = (await save('CSV')).toString().trim().split('\n'), layer = trace.attn.find((x) => x.id === 'decoder.0.self');
  assert.equal(csv.length, 1 + layer.q.end * layer.k.end);
  assert.match(csv[2], /,masked$/);
  await page.click('nav button >> nth=0');
  assert.ok((await save('SVG')).toString().includes('</svg>'));
  await close(page);
});

test('markup in words is text', async () => {
  const hostile = structuredClone(trace), evil = '</script><img src=x onerror=alert(1)><b>';
  hostile.sequences[0].text = evil;
  hostile.sequences[0].tokens[1].text = evil;
  hostile.sequences[0].tokens[2].text = '\u202Eשלום';
  hostile.output.text = evil;
  const file = pageOf('hostile', JSON.stringify(hostile));
  for (const view of kViews) {
    const page = await open(link(file, `#view=${view}`));
    assert.equal(await page.locator('img, #app b:empty').count(), 0);
    assert.ok((await page.textContent('body')).includes(evil));
    await close(page);
  }
});

test('damaged traces give a readable message', async () => {
  const messages = {
    cut: [readFileSync(tracePath, 'utf8').slice(0, 5000), /it is not whole JSON text/],
    version: [JSON.stringify({...trace, version: '2.0'}), /version is '2.0', expected 1.x/],
  };
  for (const [name, [text, expected]] of Object.entries(messages)) {
    const page = await open(link(pageOf(name, text)));
    assert.match(await page.textContent('[role=alert]'), expected);
    await close(page);
  }
  const bad = structuredClone(trace);
  bad.tensors[bad.attn[0].weights].crc32 ^= 1;
  bad.tensors[bad.attn[0].weights].crc32 >>>= 0;
  const page = await open(link(pageOf('sum', JSON.stringify(bad)), '#view=map&layer=encoder.0.self'));
  assert.match(await page.textContent('body'), /has the check sum \d+, expected \d+/);
  await close(page);
});

test('another trace can be opened, and a wrong one is refused', async () => {
  const page = await open(link(one));
  await page.setInputFiles('input[type=file]', {name: 'no.json', mimeType: 'application/json', buffer: Buffer.from('{}')});
  await page.waitForSelector('[role=alert]');
  assert.match(await page.textContent('[role=alert]'), /no.json: format is/);
  await page.setInputFiles('input[type=file]', tracePath);
  await page.waitForSelector('.which button');
  assert.equal(await page.locator('.which button').count(), 2);
  await close(page);
});

test('traces of every family show every view', async () => {
  // Some by default, as a browser takes its time: all with HEED_BROWSER_ALL=1.
  const some = ['rnn', 'rnn-additive', 'rnn-self-attention', 'tagger-lstm', 'transformer-long', 'transformer-lm-rotary-grouped'].map((x) => x + '.json');
  const all = readdirSync(samples).filter((x) => x.endsWith('.json')).sort(), names = process.env.HEED_BROWSER_ALL ? all : some;
  for (const name of names) {
    const page = await open(link(pageOf('family', readFileSync(join(samples, name), 'utf8'))), {width: 390});
    for (let i = 0; i < kViews.length; ++i) {
      await page.click(`nav button >> nth=${i}`);
      await page.waitForSelector(`main[data-view=${kViews[i]}] > *`);
      const text = await page.textContent('main');
      assert.ok(!text.includes('This cannot be shown') && !/NaN|undefined/.test(text), `${name} ${kViews[i]}: ${text.slice(0, 300)}`);
      assert.ok((await sideways(page)) <= 0, `${name} ${kViews[i]}: ${await sideways(page)} px too wide`);
    }
    await close(page);
  }
});

// ---- reports (plot.html) ----

const hostileText = '</script><img src=x onerror=alert(1)>';
const report = {
  format: 'heed-report', version: '1.0', title: `A report ${hostileText}`, paragraphs: [hostileText], footer: 'made by hand',
  verdicts: [{outcome: 'confirmed', text: 'yes'}, {outcome: 'refuted', text: 'no'}, {outcome: 'open', text: 'perhaps'}],
  plots: [
    {title: 'Lines', marks: 'lines', x: {label: 'tokens', scale: 'log'}, y: {label: 'accuracy', low: 0}, note: 'quartiles',
      series: [{name: 'with', points: [[1, 0.5, 0.4, 0.6], [10, 0.75, 0.7, 0.8], [100, null], [1000, 0.9]]}, {name: 'without', points: [[1, 0.25], [10, 0.125]]}]},
    {title: 'Bars', marks: 'bars', x: {label: ''}, y: {label: 'ms'}, categories: ['first', 'a name that is so long that it does not fit beside its bar on a small screen'], series: [{name: 'time', points: [[0, 3], [1, 4, 3, 5]]}]},
    {title: 'Dots', marks: 'dots', x: {label: ''}, y: {label: 'error', scale: 'log'}, categories: ['x', 'y'], series: [{name: 'e', points: [[0, 1e-7], [1, 0]]}]},
    {title: 'Empty', marks: 'lines', x: {label: 'step'}, y: {label: 'loss'}, series: [{name: 'dev', points: []}]},
  ],
  tables: [{title: 'Runs', columns: ['name', 'value'], rows: [[hostileText, '0.5']]}],
};
const plotShell = readFileSync(join(here, '../dist/plot.html'), 'utf8');
const reportFile = resolve(out, 'report.html');
writeFileSync(reportFile, plotShell.replace('@HEED_DATA@', () => JSON.stringify(report).replace(/</g, '\\u003c')));

test('a report shows its plots and their numbers, and text is text', async () => {
  for (const [width, dark] of [[1280, false], [390, true]]) {
    const page = await open(link(reportFile), {width, dark});
    assert.equal(await page.locator('.plot canvas').count(), 4);
    assert.equal(await page.locator('img').count(), 0);
    assert.equal(await page.textContent('h1'), report.title);
    assert.ok((await sideways(page)) <= 0, `${width}: ${await sideways(page)} px too wide`);
    await page.screenshot({path: join(out, `report-${width}-${dark ? 'dark' : 'light'}.png`), fullPage: true});
    const first = page.locator('.plot').first(), readout = () => first.locator('.readout').textContent();
    assert.equal(await readout(), 'quartiles');
    await first.locator('[role=group]').focus();
    await page.keyboard.press('ArrowRight');
    assert.equal(await readout(), 'tokens 1: with 0.5 (0.4 to 0.6) · without 0.25');
    await page.keyboard.press('End');
    assert.equal(await readout(), 'tokens 1000: with 0.9');
    await first.locator('.key button').first().click();
    await first.locator('[role=group]').focus();
    await page.keyboard.press('Home');
    assert.equal(await readout(), 'tokens 1: without 0.25', 'a series that is switched off');
    await first.locator('summary').click();
    await first.locator('tbody tr').nth(1).waitFor();
    assert.deepEqual(await first.locator('tbody tr').nth(1).locator('th, td').allTextContents(), ['10', '0.75 (0.7 to 0.8)', '0.125']);
    await close(page);
  }
});

test('plots of a report are saved, and pointing at them reads them', async () => {
  const page = await open(link(reportFile));
  const save = async (kind) => {
    const [file] = await Promise.all([page.waitForEvent('download'), page.locator('.plot').first().getByText(kind, {exact: true}).click()]);
    return readFileSync(await file.path());
  };
  const svg = (await save('SVG')).toString();
  assert.equal(await page.evaluate((text) => new DOMParser().parseFromString(text, 'image/svg+xml').querySelector('parsererror') === null, svg), true);
  assert.equal((svg.match(/<circle/g) ?? []).length, 5, 'a dot for each value');
  assert.equal((await save('PNG')).subarray(1, 4).toString(), 'PNG');
  assert.equal((await save('CSV')).toString(), 'series,tokens,accuracy,low,high\nwith,1,0.5,0.4,0.6\nwith,10,0.75,0.7,0.8\nwith,100,,,\nwith,1000,0.9,,\nwithout,1,0.25,,\nwithout,10,0.125,,\n');
  const canvas = page.locator('.plot').nth(1).locator('canvas'), box = await canvas.boundingBox();
  await canvas.hover({position: {x: box.width / 2, y: 15}});
  assert.equal(await page.locator('.plot').nth(1).locator('.readout').textContent(), 'first: time 3');
  await close(page);
});

test('curve.html of a training is such a report', async () => {
  const page = await open(link(join(model, 'curve.html')), {width: 390});
  assert.deepEqual(await page.locator('.plot h2').allTextContents(), ['Loss of a token', 'Learning rate']);
  assert.match(await page.textContent('.plot .readout'), /^Lowest dev loss: [\d.]+ at step \d+\.$/);
  assert.ok((await sideways(page)) <= 0);
  await page.screenshot({path: join(out, 'curve-390-light.png'), fullPage: true});
  await close(page);
});

let failed = 0;
const only = process.env.HEED_BROWSER_TEST;
for (const [name, run] of tests.filter(([name]) => !only || name.includes(only))) {
  const begin = Date.now();
  problems.length = 0;
  try {
    await run();
    assert.deepEqual(problems, [], 'messages of the browser');
    console.log(`ok      ${name} (${Date.now() - begin} ms)`);
  } catch (error) {
    ++failed;
    console.log(`FAILED  ${name}\n${error.message}\n${problems.join('\n')}`);
  }
}
await browser.close();
process.exit(failed ? 1 : 0);
