// SPDX-License-Identifier: Apache-2.0
// Rules that hold in every view: numbers are the model's, textures differ, text is in its own direction, little is in the page.
import assert from 'node:assert/strict';
import {statSync} from 'node:fs';
import {close, goTo, kViews, link, until} from './harness.mjs';

const floats = (trace, name) => {
  const {data, shape} = trace.tensors[name], bytes = Buffer.from(data, 'base64');
  return {shape, at: (i) => bytes.readFloatLE(4 * i)};
};
const put = (trace, name, i, value) => {
  const tensor = trace.tensors[name], bytes = Buffer.from(tensor.data, 'base64');
  bytes.writeFloatLE(value, 4 * i);
  trace.tensors[name] = {...tensor, data: bytes.toString('base64'), crc32: undefined};
};

// The six steps, again and by themselves, from what is in the file: not by the page's code.
function byHand(trace, layer, h, t) {
  const Q = floats(trace, layer.Q), K = floats(trace, layer.K), V = floats(trace, layer.V), O = floats(trace, layer.O);
  const [, T, D] = Q.shape, [, S, Dv] = V.shape, g = layer.key_heads[h], list = (n, f) => Array.from({length: n}, (_, i) => f(i));
  const raw = list(S, (s) => list(D, (d) => Q.at((h * T + t) * D + d) * K.at((g * S + s) * D + d)).reduce((a, b) => a + b, 0));
  const scaled = raw.map((x) => x * layer.score.scale), seen = list(S, (s) => layer.mask.type !== 'causal' || s <= t + layer.mask.offset);
  const max = Math.max(...scaled.filter((_, s) => seen[s])), exps = scaled.map((x, s) => (seen[s] ? Math.exp(x - max) : 0)), Z = exps.reduce((a, b) => a + b, 0);
  const weights = exps.map((x) => x / Z), norms = list(S, (s) => weights[s] * Math.hypot(...list(Dv, (d) => V.at((g * S + s) * Dv + d))));
  const mix = list(Dv, (d) => weights.reduce((sum, w, s) => sum + w * V.at((g * S + s) * Dv + d), 0));
  const off = Math.max(...mix.map((x, d) => Math.abs(x - O.at((h * T + t) * Dv + d))));
  return {lengths: list(S, (s) => Math.hypot(...list(D, (d) => K.at((g * S + s) * D + d)))), raw, scaled, seen, exps, weights, norms, off};
}

export function rulesTests({open, pageOf, browser}, trace, one, two) {
  const tests = [];
  const test = (name, body) => tests.push([name, body]);
  const find = (path) => trace.attn.find((x) => x.id === path);

  test('the numbers of all six steps are those of q, k and v', async () => {
    for (const [path, h, t] of [['encoder.1.self', 1, 4], ['decoder.0.self', 0, 2], ['decoder.1.cross', 2, 3]]) {
      const done = byHand(trace, find(path), h, t);
      assert.ok(done.off < 1e-5, `${path}: the sum is ${done.off} from the recorded output`);
      const page = await open(link(one, `#view=walk&layer=${path}&head=${h}&query=${t}&key=0&merge=false`));
      const columns = [['lengths'], ['raw'], ['raw', 'scaled'], ['raw', 'scaled', 'seen'], ['raw', 'scaled', 'seen', 'exps', 'weights'], ['raw', 'scaled', 'seen', 'exps', 'weights', 'norms']];
      for (let step = 1; step <= 6; ++step) {
        await page.click(`.steps button >> nth=${step - 1}`);
        const rows = await page.$$eval('.ledger tbody tr', (all) => all.map((row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent.trim().replace('−', '-'))));
        assert.equal(rows.length, done.raw.length);
        rows.forEach((cells, s) => columns[step - 1].forEach((name, c) => {
          const expected = done[name][s];
          if (name === 'seen') return assert.equal(cells[c], expected ? 'yes' : 'masked');
          const digits = /e/.test(cells[c]) ? Math.abs(expected) * 0.06 : 10 ** -(cells[c].split('.')[1]?.length ?? 0) * 0.51 + 1e-5;
          return assert.ok(Math.abs(Number(cells[c]) - expected) <= digits, `${path} step ${step} ${name} of key ${s}: ${cells[c]}, expected ${expected}`);
        }));
      }
      await close(page);
    }
  });

  test('following Next leads from a word to why it was said, and to another text', async () => {
    for (const width of [1280, 390]) {
      const page = await open(link(two), {width}), seen = [];
      for (let i = 0; i < 20; ++i) {
        const view = await page.getAttribute('main', 'data-view');
        if (seen[seen.length - 1] !== view) assert.equal(await page.evaluate(() => scrollY), 0, `${view} begins at its top`);
        if (view === 'effect') assert.match(await page.textContent('.way'), /^When it chose .+, it looked at /);
        seen.push(view);
        if (!(await page.locator('.next button').count())) break;
        if (i % 2) await page.locator('.next button').focus().then(() => page.keyboard.press('Enter'));
        else await page.click('.next button');
        await page.waitForTimeout(60);
      }
      assert.deepEqual(seen, ['text', ...Array(6).fill('walk'), 'map', 'heads', 'output', 'effect', 'compare']);
      await close(page);
    }
  });

  test('a row that does not sum to 1 is flagged', async () => {
    const bad = structuredClone(trace), layer = bad.attn.find((x) => x.id === 'encoder.0.self');
    put(bad, layer.weights, 0, floats(bad, layer.weights).at(0) + 0.25);
    const file = pageOf('bad-row', JSON.stringify(bad));
    for (const view of ['text', 'map']) {
      const page = await open(link(file, `#view=${view}&layer=encoder.0.self&head=0&query=0&merge=false`));
      assert.match(await page.textContent('.check.bad'), /It sums to 1\.2[45]\d*, expected 1/);
      await page.keyboard.press(view === 'text' ? 'ArrowRight' : 'ArrowDown');
      await page.waitForSelector('.check.bad', {state: 'detached'});
      await close(page);
    }
  });

  test('no mask, a causal one and padding differ in pixels', async () => {
    const padded = structuredClone(trace), layer = padded.attn.find((x) => x.id === 'encoder.0.self');
    layer.mask = {...layer.mask, keys: layer.k.end - 2};
    const file = pageOf('padded', JSON.stringify(padded));
    const hatched = async (file, path) => {
      const page = await open(link(file, `#view=map&layer=${path}&head=0&merge=false`));
      const count = await page.locator('main canvas.points').evaluate((canvas) => {
        const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        const hatch = getComputedStyle(canvas).getPropertyValue('--hatch').trim(), [r, g, b] = [1, 3, 5].map((i) => parseInt(hatch.slice(i, i + 2), 16));
        let n = 0;
        for (let i = 0; i < data.length; i += 4) n += Math.abs(data[i] - r) + Math.abs(data[i + 1] - g) + Math.abs(data[i + 2] - b) < 60;
        return n;
      });
      const masked = (await page.locator('.readout').count()) && (await page.evaluate(() => document.querySelector('.readout').textContent));
      await close(page);
      return {count, masked};
    };
    const none = await hatched(one, 'encoder.0.self'), causal = await hatched(one, 'decoder.0.self'), padding = await hatched(file, 'encoder.0.self');
    assert.ok(none.count < padding.count / 4 && padding.count < causal.count, `${none.count}, ${padding.count}, ${causal.count} pixels of hatching`);
  });

  test('an alignment has as many rows as words were written, and as many columns as were read', async () => {
    const cross = find('decoder.1.cross'), [, T, S] = trace.tensors[cross.weights].shape;
    assert.notEqual(T, S);
    const page = await open(link(one, '#view=table&layer=decoder.1.cross&head=0&merge=false'));
    assert.equal(await page.locator('table.data tbody tr').count(), S);
    await page.click('main input[type=checkbox]');
    assert.equal(await page.locator('table.data tbody tr').count(), Math.min(400, T * S));
    await close(page);
  });

  test('what sinks and special tokens had is printed when they are left out', async () => {
    const layer = find('encoder.0.self'), W = floats(trace, layer.weights), [, T, S] = W.shape, t = 2, h = 0;
    const tokens = trace.sequences.find((x) => x.id === layer.k.seq).tokens, special = tokens.slice(layer.k.begin, layer.k.end).map((x) => x.special);
    let removed = 0, first = 0;
    for (let s = 0; s < S; ++s) removed += special[s] ? W.at((h * T + t) * S + s) : 0;
    for (let i = 0; i < T; ++i) first += W.at((h * T + i) * S) / T;
    if (first >= 0.5 && !special[0]) removed += W.at((h * T + t) * S);
    const page = await open(link(one, `#view=map&layer=encoder.0.self&head=${h}&query=${t}&merge=false&special=out`));
    const printed = Number(/They had (\S+) of/.exec(await page.textContent('.warn'))[1]);
    assert.ok(special.includes(true) && Math.abs(printed - removed) <= 6e-4, `${printed}, expected ${removed}`);
    await close(page);
  });

  test('words from right to left, and bytes that are no letters, are shown in their places', async () => {
    const other = structuredClone(trace), hebrew = ['החיה', 'לא', 'חצתה'], tokens = other.sequences.find((x) => x.role === 'source').tokens;
    hebrew.forEach((text, i) => Object.assign(tokens[i], {text, piece: text}));
    Object.assign(tokens[3], {text: '\ufffd', piece: '<0xE2>', word: 3});
    const page = await open(link(pageOf('right-to-left', JSON.stringify(other)), '#view=text&layer=encoder.0.self&head=0&merge=false'));
    const keys = await page.$$eval('.chip.key', (all) => all.map((x) => ({text: x.querySelector('bdi').textContent, left: x.getBoundingClientRect().left})));
    assert.deepEqual(keys.slice(0, 3).map((x) => x.text), hebrew);
    assert.ok(keys[0].left < keys[1].left && keys[1].left < keys[2].left, 'axes are in the order of the tokens');
    assert.match(keys[3].text, /\ufffd|0xE2/);
    for (const view of kViews) await goTo(page, view);
    await close(page);
  });

  test('no difference of unlike words is drawn', async () => {
    const page = await open(link(two, '#view=compare'));
    assert.match(await page.textContent('main .note'), /No map of differences is drawn: (row|column) \d+ is 'tired' here and 'wide' there/);
    await close(page);
  });

  test('nothing moves where less motion is wanted', async () => {
    for (const [motion, expected] of [['reduce', '0s'], ['no-preference', '0.12s']]) {
      const page = await open(link(one), {motion});
      assert.equal(await page.locator('.chip').first().evaluate((x) => getComputedStyle(x).transitionDuration), expected);
      await close(page);
    }
  });

  test('colours of weights stay where colours are forced', async () => {
    const page = await open(link(one), {contrast: 'active'});
    assert.equal(await page.locator('.chip.key').first().evaluate((x) => getComputedStyle(x).forcedColorAdjust), 'none');
    await close(page);
  });

  test('144 heads: one canvas, few nodes', async () => {
    const many = structuredClone(trace), layer = many.attn.find((x) => x.id === 'encoder.0.self'), H = layer.heads.length, W = many.tensors[layer.weights];
    const bytes = Buffer.from(W.data, 'base64'), twelve = Buffer.concat(Array.from({length: 12}, (_, h) => bytes.subarray((h % H) * bytes.length / H, (h % H + 1) * bytes.length / H)));
    many.tensors.twelve = {...W, shape: [12, ...W.shape.slice(1)], data: twelve.toString('base64'), crc32: undefined};
    many.attn = Array.from({length: 12}, (_, l) => ({...layer, id: `encoder.${l}.self`, path: `encoder.${l}.self`, layer: l, heads: Array.from({length: 12}, (_, h) => h),
      key_heads: Array.from({length: 12}, (_, h) => h), weights: 'twelve', Q: undefined, K: undefined, V: undefined, O: undefined, lse: undefined, stats: {row_sum_error: 0}}));
    many.effects = [];
    const page = await open(link(pageOf('heads144', JSON.stringify(many)), '#view=heads'));
    const {nodes, canvases} = await page.evaluate(() => ({nodes: document.querySelectorAll('*').length, canvases: document.querySelectorAll('main canvas').length}));
    assert.ok(nodes < 3000 && canvases <= 2, `${nodes} nodes, ${canvases} canvases`);
    await goTo(page, 'table');
    const time = await page.evaluate(() => new Promise((done) => {
      const from = performance.now();
      document.querySelectorAll('nav button')[3].click();
      requestAnimationFrame(() => setTimeout(() => done(performance.now() - from)));
    }));
    await until(page, () => document.querySelector('main').dataset.view === 'heads');
    console.log(`        144 heads drawn in ${Math.round(time)} ms, ${nodes} nodes`);
    await close(page);
  });

  test('twelve words of a small model are less than 1.5 MB', async () => {
    const size = statSync(one).size;
    console.log(`        ${(size / 1e6).toFixed(2)} MB`);
    assert.ok(size < 1.5e6, `${size} bytes`);
  });

  return tests;
}
