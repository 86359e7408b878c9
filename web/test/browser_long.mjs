// SPDX-License-Identifier: Apache-2.0
// Long texts in a browser: a map that is dragged and zoomed, tiles that a worker makes.
import assert from 'node:assert/strict';
import {statSync} from 'node:fs';
import {close, kLooks, link, until} from './harness.mjs';

// 16,000 tokens, one head with queries and keys that are made up; weights are what they are.
function longTrace(T) {
  const D = 64, random = (n, seed) => { let x = seed; return Float32Array.from({length: n}, () => ((x = (x * 1103515245 + 12345) & 0x7fffffff) / 0x7fffffff - 0.5) * 2); };
  const q = random(T * D, 1), k = random(T * D, 2), lse = new Float32Array(T), score = (t, s) => { let sum = 0; for (let d = 0; d < D; ++d) sum += q[t * D + d] * k[s * D + d]; return sum / 8; };
  // Of every row the sum over a thousandth of what it sees, scaled: the page takes lse as it is given.
  for (let t = 0; t < T; ++t) { let sum = 0, n = 0; for (let s = t % 97; s <= t; s += 97) { sum += Math.exp(score(t, s)); ++n; } lse[t] = n ? Math.log((sum * (t + 1)) / n) : score(t, 0); }
  const bytes = (array) => Buffer.from(array.buffer).toString('base64');
  const half = (array) => { const out = Buffer.alloc(array.length * 2); array.forEach((x, i) => { const b = new Uint32Array(Float32Array.of(x).buffer)[0], e = ((b >> 23) & 255) - 112; out.writeUInt16LE(e <= 0 ? 0 : ((b >>> 16) & 0x8000) | (e << 10) | ((b >> 13) & 1023), 2 * i); }); return out.toString('base64'); };
  const map = Uint8Array.from({length: 128 * 128}, (_, i) => (i % 128 <= i / 128 ? 40 + (i * 7919) % 200 : 0));
  const span = {seq: 'target', begin: 0, end: T};
  return {q, k, lse, score, text: JSON.stringify({format: 'heed-trace', version: '1.1', tool: 'by hand', model: {kind: 'transformer', task: 'language', layers: 1, heads: 1, kv_heads: 1, width: 64, head_width: 64},
    sequences: [{id: 'target', role: 'text', text: 'w '.repeat(T), tokens: Array.from({length: T}, (_, i) => ({id: i % 97 + 5, piece: `w${i % 97}`, text: i === 12345 ? 'needle' : `w${i % 97}`, special: false, word: i}))}],
    attn: [{id: 'd', path: 'decoder.0.self', stack: 'decoder', layer: 0, role: 'masked', heads: [0], key_heads: [0], q: span, k: span, score: {fn: 'dot', scale: 0.125}, mask: {type: 'causal', offset: 0}, stats: {row_sum_error: 0},
      pooled: {queries: T, keys: T, maps: [{head: 0, mean: 'm', max: 'm'}]}, tiles: [{head: 0, q: 'q', k: 'k', lse: 'l', error: 0.001}]}],
    states: [], output: {seq: 'target', text: '', logprob: 0, score: 0, finished: true, steps: []}, capture: {full: false, dropped: [], precision: 'f32', tolerance: 0.002},
    tensors: {q: {shape: [T, D], dtype: 'f16', enc: 'base64', data: half(q)}, k: {shape: [T, D], dtype: 'f16', enc: 'base64', data: half(k)}, l: {shape: [T], dtype: 'f32', enc: 'base64', data: bytes(lse)},
      m: {shape: [128, 128], dtype: 'u8n', min: 0, max: 1, enc: 'base64', data: Buffer.from(map).toString('base64')}}})};
}

export function longTests({open, pageOf, shoot}) {
  const tests = [];
  const test = (name, body) => tests.push([name, body]);

  test('16,000 tokens: painted soon, dragged smoothly, tiles made by a worker, jumped to by a word', async () => {
    const made = longTrace(16000), file = pageOf('long', made.text);
    const size = statSync(file).size;
    console.log(`        ${(size / 1e6).toFixed(1)} MB`);
    assert.ok(size < 8e6, `${size} bytes`);
    const begin = Date.now(), page = await open(link(file, '#view=map&merge=false'));
    await page.waitForSelector('canvas.long');
    const paint = await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(performance.now())))));
    console.log(`        painted after ${Math.round(paint)} ms of the page, ${Date.now() - begin} ms with the browser's own`);
    // What the mask hides is no zero: hatched from afar, too. The last columns of the first rows are hidden.
    const zeros = await page.locator('canvas.long').evaluate((canvas) => {
      const {data} = canvas.getContext('2d').getImageData(canvas.width - 300, 120, 200, 100);
      let n = 0;
      for (let i = 0; i < data.length; i += 4) n += data[i] < 10 && data[i + 1] < 60 && data[i + 2] > 60 && data[i + 2] < 110;
      return n;
    });
    assert.equal(zeros, 0, 'pixels of the colour of 0 where nothing may be seen');
    await page.fill('input[type=search]', 'needle');
    await page.press('input[type=search]', 'Enter');
    await until(page, () => location.hash.includes('query=12345'));
    const value = async () => { for (let i = 0; i < 50 && !/needle/.test(await page.textContent('.readout')); ++i) await page.waitForTimeout(40); return page.textContent('.readout'); };
    const text = await value(), [, key] = /to \S+ \((\d+)\)/.exec(text), expected = Math.exp(made.score(12345, Number(key)) - made.lse[12345]);
    assert.ok(Math.abs(Number(text.trim().split(/\s+/).pop()) - expected) <= 2e-3 * Math.max(1, expected), `${text}, expected ${expected}`);
    await until(page, () => Number(document.querySelector('canvas.long').dataset.tiles) > 0);
    await page.waitForTimeout(300);
    // The handler and the picture that it leads to, a hundred times.
    const times = await page.evaluate(async () => {
      const canvas = document.querySelector('canvas.long'), rect = canvas.getBoundingClientRect(), all = [];
      const fire = (type, x, y) => canvas.dispatchEvent(new PointerEvent(type, {pointerId: 1, clientX: x, clientY: y, bubbles: true}));
      canvas.setPointerCapture = () => {};
      fire('pointerdown', rect.left + 300, rect.top + 300);
      for (let i = 0; i < 100; ++i) {
        let painting = 0;
        requestAnimationFrame(() => { painting = performance.now(); });  // before the page's own, which the handler asks for
        const from = performance.now();
        fire('pointermove', rect.left + 300 - i, rect.top + 300 - i);
        const handled = performance.now() - from;
        await new Promise((done) => requestAnimationFrame(() => { all.push(handled + performance.now() - painting); done(); }));
      }
      fire('pointercancel', rect.left, rect.top);
      return all.sort((a, b) => a - b);
    });
    console.log(`        pan handler with its picture: median ${times[50].toFixed(2)} ms, longest ${times[99].toFixed(1)} ms`);
    await close(page);
    for (const [width, dark] of kLooks) {
      const screen = await open(link(file, '#view=map&merge=false&query=12345&key=12300'), {width, dark});
      await shoot(screen, 'long-whole', width, dark);
      await screen.fill('input[type=search]', 'needle');
      await screen.press('input[type=search]', 'Enter');
      await until(screen, () => Number(document.querySelector('canvas.long').dataset.tiles) > 0);
      await shoot(screen, 'long-near', width, dark);
      await close(screen);
    }
  });

  return tests;
}
