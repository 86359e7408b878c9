// SPDX-License-Identifier: Apache-2.0
// The page in a real browser: node test/browser.mjs <chromium> <heed> <model> <folder of traces> <folder for screenshots>
// The views are here; long texts and reports in browser_long.mjs and browser_reports.mjs.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {readdirSync, readFileSync} from 'node:fs';
import {join, resolve} from 'node:path';
import {longTests} from './browser_long.mjs';
import {reportTests, writeReport} from './browser_reports.mjs';
import {rulesTests} from './browser_rules.mjs';
import {close, goTo, here, kLooks, kViews, link, run, says, sideways, start, until} from './harness.mjs';

const [program, heed, model, samples, out] = process.argv.slice(2);
const session = await start(program, out), {browser, problems, open, pageOf, shoot, shootAll} = session;
const tests = [];
const test = (name, body) => tests.push([name, body]);

const tired = "The animal didn't cross the street because it was too tired.", wide = tired.replace('tired', 'wide');
const two = resolve(out, 'two.html'), tracePath = resolve(out, 'tired.json');
execFileSync(heed, ['explain', '--model', model, '--beam', '3', '--out', two, '--trace', tracePath, '--compare', wide, tired]);
const trace = JSON.parse(readFileSync(tracePath, 'utf8'));
const one = pageOf('one', readFileSync(tracePath, 'utf8'));
const reportFile = writeReport(out);
const repeated = (n) => Array.from({length: n}, (_, i) => tired.replace('.', ', and').split(' ')[i % 12]).join(' ') + ' .';

test('every view renders at both widths, light and dark, without scrolling sideways', async () => {
  for (const [width, dark] of kLooks) {
    const page = await open(link(two), {width, dark});
    for (const view of kViews) {
      await goTo(page, view);
      await shoot(page, view, width, dark);
      assert.ok((await sideways(page)) <= 0, `${view} at ${width}: ${await sideways(page)} px too wide`);
      if (view !== 'states') assert.equal(await page.locator('main .empty').count(), 0, `${view} is empty`);
    }
    await close(page);
  }
});

test('texts of 40 and of 200 words, and a word that is too long', async () => {
  for (const [name, text] of [['words40', repeated(40)], ['words200', repeated(200)], ['longword', `The ${'Donaudampfschiff'.repeat(6)} was too tired.`]]) {
    const file = resolve(out, `${name}.html`);
    execFileSync(heed, ['explain', '--model', model, '--effects', name === 'words200' ? 'none' : 'some', '--out', file, text]);
    await shootAll(name, file, ['text', 'walk', 'map', 'effect', ...(name === 'longword' ? ['output'] : ['heads'])]);
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
  await until(page, () => location.hash.includes('pinned=true'));
  await page.keyboard.press('?');
  assert.equal(await page.locator('dialog[open]').count(), 1);
  await page.keyboard.press('Escape');
  const outline = await page.locator('nav button').nth(kViews.indexOf('walk')).evaluate((x) => { x.focus({focusVisible: true}); return getComputedStyle(x).outlineStyle; });
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
  for (const effect of hostile.effects) effect.name = evil;
  const page = await open(link(pageOf('hostile', JSON.stringify(hostile))));
  for (const view of kViews) {
    await goTo(page, view);
    assert.equal(await page.locator('img, #app b:empty').count(), 0);
    assert.ok((await page.textContent('body')).includes(evil));
  }
  await close(page);
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

test('another trace can be opened, and a wrong one gives a message', async () => {
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
    for (const view of kViews) {
      await goTo(page, view);
      const text = await page.textContent('main');
      assert.ok(!text.includes('This cannot be shown') && !/NaN|undefined/.test(text), `${name} ${view}: ${text.slice(0, 300)}`);
      assert.ok((await sideways(page)) <= 0, `${name} ${view}: ${await sideways(page)} px too wide`);
    }
    await close(page);
  }
});

// ---- effects ----

test('the effects are the recorded ones, and a click goes on to the head', async () => {
  const page = await open(link(one, '#view=effect'));
  const last = trace.effects.length - 1;
  assert.equal(await page.locator('.chooser button').count(), trace.effects.length);
  for (const i of [0, last]) {
    await page.click(`.chooser button >> nth=${i}`);
    const {value, left_out: left, heads} = trace.effects[i];
    const strongest = left.reduce((a, b) => (Math.abs(b.change) > Math.abs(a.change) ? b : a));
    const lead = await page.textContent('.lead'), percent = (x) => `${(100 * Math.exp(x)).toFixed(Math.exp(x) < 0.01 ? 2 : 1)}%`;
    assert.ok(lead.includes(percent(value)) && lead.includes(percent(value + strongest.change)), lead);
    assert.ok(lead.includes(trace.sequences[0].tokens[strongest.tokens.begin].text), lead);
    const row = await page.locator('.worth tbody tr').first().locator('th, td').allTextContents();
    assert.equal(row[0], `${heads[0].path}.${heads[0].head}`);
    assert.equal(Number(row[1].replace('−', '-')).toFixed(2), heads[0].gradient.toFixed(2));
    assert.equal(Number(row[2].replace('−', '-')).toFixed(2), (-heads[0].off).toFixed(2), 'measured');
  }
  assert.ok((await page.textContent('main')).includes('not measured'), 'heads that were not switched off');
  await page.click('.worth button >> nth=0');
  await page.waitForSelector('main[data-view=map]');
  assert.ok(page.url().includes(`layer=${trace.effects[last].heads[0].path}`));
  await close(page);
  const {effects, ...plain} = trace;
  assert.ok(effects.length > 0);
  const without = await open(link(pageOf('without', JSON.stringify(plain)), '#view=effect'));
  assert.match(await without.textContent('main'), /Not captured/);
  assert.match(await without.textContent('footer'), /not measured in this trace/);
  await close(without);
});

test('two models, and a head on and off, are compared', async () => {
  const gated = resolve(out, 'gated.html'), models = resolve(out, 'models.html');
  execFileSync(heed, ['explain', '--model', model, '--out', gated, '--gate', 'decoder.1.cross.0=0', '--effects', 'none', tired]);
  execFileSync(heed, ['explain', '--model', model, '--out', models, '--compare-model', model, '--effects', 'none', tired]);
  for (const [file, label] of [[gated, 'decoder.1.cross.0=0'], [models, model]]) {
    const page = await open(link(file, '#view=compare'));
    assert.equal(await page.locator('.pair section').count(), 2);
    assert.ok((await page.locator('.pair h3').last().textContent()).endsWith(label));
    assert.match(await page.textContent('main .note'), /One sentence, two models/);
    if (file === models) assert.match(await page.textContent('main .note'), /largest difference of this row is 0.000/, 'a model and itself');
    await page.screenshot({path: join(out, `compare-${file === gated ? 'gate' : 'models'}-1280-light.png`), fullPage: true});
    await close(page);
  }
});

// ---- accessibility ----

test('axe finds nothing serious in any view, light or dark', async () => {
  const axe = readFileSync(join(here, '../node_modules/axe-core/axe.min.js'), 'utf8');
  for (const [file, views] of [[two, kViews], [reportFile, ['']]])
    for (const dark of [false, true]) {
      const context = await browser.newContext({viewport: {width: 1280, height: 900}, colorScheme: dark ? 'dark' : 'light', reducedMotion: 'reduce', bypassCSP: true});
      const page = await context.newPage();
      await page.goto(link(file));
      await page.waitForSelector('#app > *');
      await page.evaluate(axe);
      // Colours are what differs in the dark: some views have all of them. All with HEED_BROWSER_ALL=1.
      for (const view of views.filter((one) => !dark || !one || process.env.HEED_BROWSER_ALL || ['text', 'effect', 'walk'].includes(one))) {
        if (view) await goTo(page, view);
        const found = await page.evaluate(async () => (await axe.run(document, {resultTypes: ['violations']})).violations.filter((one) => ['serious', 'critical'].includes(one.impact))
          .map((one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 120) + ' ' + (node.any[0]?.message ?? '')).slice(0, 3).join(' | ')}`));
        assert.deepEqual(found, [], `${view} ${dark ? 'dark' : 'light'}`);
      }
      await context.close();
    }
});

tests.push(...rulesTests(session, trace, one, two), ...longTests(session), ...reportTests(session, heed, join(model, 'curve.html')));
const failed = await run(tests, problems);
await browser.close();
process.exit(failed ? 1 : 0);
