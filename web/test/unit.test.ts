// SPDX-License-Identifier: Apache-2.0
// The pure functions of the page, on traces of every family that the tests of heed/trace make.
// @ts-nocheck: types of Node are not installed
import assert from 'node:assert/strict';
import {readdirSync, readFileSync} from 'node:fs';
import {join} from 'node:path';
import test from 'node:test';
import {headStats, kLeftOut, kMasked, kNotCaptured, keysOf, number, queriesOf, rankOf, rowsOf, scaleOf, seenBy, sees, seesAny, walk, withoutColumns} from '../src/numbers';
import {fromLink, kDefaults, panelOf, row, rowError, strongest, toLink} from '../src/panel';
import {agreement, effectRows, layersOf, methodsOf, mostMeasured, wayOf} from '../src/effect';
import {kHidden, kOutside, kTile, makeTile, weightAt} from '../src/tile';
import {longHead} from '../src/tiles';
import {levelOf} from '../src/views/long_map';
import {axesOf, placesOf, readReport, runs, withoutPlace} from '../src/plot/report';
import {csvOf} from '../src/plot/plot';
import {axisOf, stepOf, tickText, valueText} from '../src/scale';
import {escaped} from '../src/surface';
import {crc32, decode, fromBase64, fromHalf, readTraces, Trace} from '../src/trace';
import {unlike} from '../src/views/compare';
import {keyUnits, mergeRows, queryUnits} from '../src/words';

const folder = process.env.HEED_TRACES!;
const names = readdirSync(folder).filter((name) => name.endsWith('.json')).sort();
const traces = new Map(names.map((name) => [name, readTraces(readFileSync(join(folder, name), 'utf8'), name)[0]]));
const base64 = (bytes) => Buffer.from(bytes).toString('base64');
const near = (a, b, tolerance, what) => assert.ok(Math.abs(a - b) <= tolerance, `${what}: ${a}, expected ${b} within ${tolerance}`);

test('there are traces of every family', () => {
  for (const name of ['transformer', 'rnn', 'rnn-dot', 'rnn-additive', 'tagger-cnn', 'tagger-fc', 'tagger-lstm', 'transformer-lm-alibi', 'transformer-lm-rotary-grouped'])
    for (const ending of ['.json', '-long.json']) assert.ok(traces.has(name + ending), name + ending);
});

test('base64 of all lengths, and what is none', () => {
  for (let n = 0; n < 20; ++n) {
    const bytes = Uint8Array.from({length: n}, (_, i) => (i * 37 + n * 11) & 255);
    assert.deepEqual(fromBase64(base64(bytes)), bytes);
  }
  assert.throws(() => fromBase64('AAA'), /3 digits, expected a multiple of 4/);
  assert.throws(() => fromBase64('AA!A'), /has '!' at 2/);
});

test('halves: all bit patterns against their definition', () => {
  assert.equal(fromHalf(0x3C00), 1);
  assert.equal(fromHalf(0xC000), -2);
  assert.equal(fromHalf(0x7BFF), 65504);
  assert.equal(fromHalf(0x0001), 2 ** -24);
  assert.equal(fromHalf(0x0400), 2 ** -14);
  assert.equal(fromHalf(0x3555), 0.333251953125);
  assert.equal(fromHalf(0xFC00), -Infinity);
  assert.ok(Number.isNaN(fromHalf(0x7E00)));
  for (let bits = 1; bits < 0x7C00; ++bits) assert.ok(fromHalf(bits) > fromHalf(bits - 1), `${bits}`);
});

test('tensors of every type, and damaged ones', () => {
  const bytes = new Uint8Array(new Float32Array([1.5, -2]).buffer);
  const raw = {shape: [2], dtype: 'f32', enc: 'base64', data: base64(bytes), crc32: crc32(bytes)};
  assert.deepEqual([...decode(raw, 'x').data], [1.5, -2]);
  assert.deepEqual([...decode({shape: [2], dtype: 'f16', data: base64([0, 0x3C, 0, 0xC0])}, 'x').data], [1, -2]);
  assert.deepEqual([...decode({shape: [3], dtype: 'u8n', min: 0, max: 2, data: base64([0, 255, 51])}, 'x').data].map((x) => +x.toFixed(5)), [0, 2, 0.4]);
  assert.deepEqual([...decode({shape: [1], dtype: 'u32', data: base64([255, 255, 255, 255])}, 'x').data], [4294967295]);
  assert.equal(crc32(Buffer.from('123456789')), 0xCBF43926);
  assert.throws(() => decode({...raw, crc32: 1}, 'x'), /'x' has the check sum \d+, expected 1: it is not what was written/);
  assert.throws(() => decode({...raw, shape: [3]}, 'x'), /'x' has 8 bytes, expected 12: it was cut off/);
});

test('files that are no traces say so', () => {
  const good = JSON.parse(readFileSync(join(folder, 'transformer.json'), 'utf8'));
  assert.throws(() => readTraces('{"format":', 'f'), /f: it is not whole JSON text/);
  assert.throws(() => readTraces('{}', 'f'), /f: format is 'undefined', expected 'heed-trace'/);
  assert.throws(() => readTraces(JSON.stringify({...good, version: '2.0'}), 'f'), /f: version is '2.0', expected 1.x: it was written by another heed/);
  assert.throws(() => readTraces(JSON.stringify({...good, attn: undefined}), 'f'), /f: 'attn' is missing/);
  assert.equal(readTraces(JSON.stringify([good, {...good, version: '1.9', more: 1}]), 'f').length, 2);
});

test('the walk gives the recorded weights and outputs, in every family and every row', () => {
  let rows = 0, additive = 0, biased = 0, grouped = 0, masked = 0;
  for (const [name, trace] of traces)
    for (const layer of trace.raw.attn) {
      if (!layer.weights || !layer.Q) continue;
      for (let head = 0; head < layer.heads.length; ++head)
        for (let t = 0; t < queriesOf(layer); ++t) {
          const done = walk(trace, layer, head, t);
          assert.notEqual(typeof done, 'string', `${name} ${layer.id}: ${done}`);
          assert.deepEqual(done.differences.map((one) => one.name), ['weights', 'log-sum-exp', 'output'], name);
          for (const one of done.differences) near(one.difference, 0, 1e-5, `${name} ${layer.id} head ${head} row ${t}: ${one.name}`);
          near(done.weights.reduce((a, b) => a + b, 0), 1, 1e-12, 'sum');
          ++rows;
          additive += layer.score.fn === 'additive';
          biased += done.bias.some((x) => x !== 0);
          grouped += new Set(layer.key_heads).size < layer.heads.length;
          masked += done.visible.includes(false);
        }
    }
  for (const [what, count] of Object.entries({rows, additive, biased, grouped, masked})) assert.ok(count > 0, `no ${what}`);
});

test('a walk over other numbers than the recorded ones is found out', () => {
  const raw = JSON.parse(readFileSync(join(folder, 'transformer.json'), 'utf8'));
  const layer = raw.attn[0], Q = raw.tensors[layer.Q], bytes = Buffer.from(Q.data, 'base64');
  bytes.writeFloatLE(bytes.readFloatLE(0) + 3, 0);
  raw.tensors[layer.Q] = {...Q, data: bytes.toString('base64'), crc32: undefined};
  const done = walk(new Trace(raw, 'f'), layer, 0, 0);
  assert.ok(Math.max(...done.differences.map((one) => one.difference)) > 1e-3);
});

test('merging pieces into words keeps sums of rows', () => {
  let merged = 0;
  for (const [name, whole] of traces) {
    // The samples have a token a word: take two for one.
    const raw = structuredClone(whole.raw);
    for (const one of raw.sequences) for (const token of one.tokens) if (token.word !== undefined) token.word >>= 1;
    const trace = new Trace(raw, name);
    for (const layer of trace.raw.attn) {
      const rows = rowsOf(trace, layer, 0);
      if (!layer.weights || !rows) continue;
      const queries = queryUnits(trace, layer, true), keys = keyUnits(trace, layer.k, true);
      assert.deepEqual(queries.flatMap((one) => one.index), Array.from({length: queriesOf(layer)}, (_, i) => i), name);
      assert.deepEqual(keys.flatMap((one) => one.index), Array.from({length: keysOf(layer)}, (_, i) => i), name);
      merged += keys.length < keysOf(layer);
      const out = mergeRows(rows, keysOf(layer), queries, keys);
      queries.forEach((_, i) => near(out.slice(i * keys.length, (i + 1) * keys.length).reduce((a, b) => a + b, 0), 1, 1e-5, `${name} ${layer.id} row ${i}`));
    }
  }
  assert.ok(merged > 0, 'no word had several pieces');
});

test('masked, not captured and left out are not zero', () => {
  const causal = traces.get('transformer-lm.json'), layer = causal.raw.attn[0];
  const panel = panelOf(causal, layer, 0, {merge: false, special: 'show'});
  for (let t = 0; t < queriesOf(layer); ++t) {
    let n = 0;
    for (let s = 0; s < keysOf(layer); ++s) {
      assert.equal(row(panel, t)[s] === kMasked, s > t);
      n += sees(layer, t, s) ? 1 : 0;
    }
    assert.equal(seenBy(layer, t), n);
  }
  const long = traces.get('transformer-long.json');
  const first = panelOf(long, long.raw.attn[0], 0, {merge: false, special: 'show'});
  assert.ok(row(first, 0).includes(kNotCaptured));
  assert.ok(row(first, 0).some((x) => x > 0));
  const out = panelOf(causal, layer, 0, {merge: false, special: 'out'});
  assert.equal(row(out, 3)[0], kLeftOut);
  near(row(out, 3).filter((x) => x > 0).reduce((a, b) => a + b, 0), 1, 1e-5, 'rescaled');
  near(out.removed[3], row(panel, 3)[0], 1e-12, 'removed');
});

test('a block is masked where each of its cells is', () => {
  const span = {seq: 's', begin: 0, end: 9};
  for (const mask of [{type: 'none', offset: 0, keys: 5}, {type: 'causal', offset: 0}, {type: 'causal', offset: 2}, {type: 'window', offset: 0, left: 2, right: 1}, {type: 'window', offset: 1, left: 3}])
    for (let t0 = 0; t0 < 9; ++t0) for (let t1 = t0 + 1; t1 <= 9; ++t1) for (let s0 = 0; s0 < 9; ++s0) for (let s1 = s0 + 1; s1 <= 9; ++s1) {
      const layer = {q: span, k: span, mask};
      let any = false;
      for (let t = t0; t < t1; ++t) for (let s = s0; s < s1; ++s) any ||= sees(layer, t, s);
      assert.equal(seesAny(layer, t0, t1, s0, s1), any, `${JSON.stringify(mask)} ${t0} ${t1} ${s0} ${s1}`);
    }
});

test('leaving columns out says what was removed', () => {
  const {rows, removed} = withoutColumns(Float64Array.from([0.5, 0.3, 0.2, 1, 0, 0]), 3, [true, false, false]);
  assert.deepEqual([...removed], [0.5, 1]);
  near(rows[1], 0.6, 1e-12, 'first');
  near(rows[2], 0.4, 1e-12, 'second');
  assert.deepEqual([rows[0], rows[3], rows[4]], [kLeftOut, kLeftOut, 0]);
});

test('scales rise from 0 to 1', () => {
  for (const name of ['linear', 'sqrt', 'log', 'row']) {
    const scale = scaleOf(name);
    assert.equal(scale(0, 1), 0);
    assert.equal(scale(1, 1), 1);
    for (let i = 1; i <= 100; ++i) assert.ok(scale(i / 100, 1) > scale((i - 1) / 100, 1) - (name === 'log' && i === 1 ? 1 : 0), name);
  }
  near(scaleOf('sqrt')(0.25, 1), 0.5, 1e-12, 'sqrt');
  near(scaleOf('log')(0.01, 1), 0.5, 1e-12, 'log');
  near(scaleOf('row')(0.2, 0.4), 0.5, 1e-12, 'row');
});

test('statistics of heads by hand', () => {
  const values = [1, 0, 0.5, 0.5], w = base64(new Uint8Array(new Float32Array(values).buffer)), e = base64(new Uint8Array(new Float32Array([0, Math.log(2)]).buffer));
  const span = {seq: 's', begin: 0, end: 2};
  const raw = {...JSON.parse(readFileSync(join(folder, 'transformer.json'), 'utf8')), sequences: [{id: 's', role: 'source', text: 'a b', tokens: []}],
    attn: [{id: 'x', path: 'x', heads: [0], key_heads: [0], q: span, k: span, score: {fn: 'dot', scale: 1}, mask: {type: 'none', offset: 0}, weights: 'w', stats: {entropy: 'e', row_sum_error: 0}}],
    tensors: {w: {shape: [1, 2, 2], dtype: 'f32', data: w}, e: {shape: [1, 2], dtype: 'f32', data: e}}};
  const trace = new Trace(raw, 'f'), stats = headStats(trace, raw.attn[0], 0);
  near(stats.entropy, 0.5, 1e-6, 'entropy');
  near(stats.diagonal, 0.75, 1e-12, 'diagonal');
  near(stats.sink, 0.75, 1e-12, 'sink');
  assert.equal(stats.sinkKey, 0);
});

test('ranks, strongest, numbers, links, markup', () => {
  assert.deepEqual(rankOf([0.2, 0.5, kMasked, 0.3], 3), [2, 3]);
  assert.deepEqual(strongest([0.1, 0.6, 0.3], 0.85, 5), [1, 2]);
  assert.deepEqual(strongest([kMasked, 0, 0.3], 1, 5), [2]);
  assert.equal(number(0.35149), '0.351');
  assert.equal(number(0), '0.000');
  assert.equal(number(0.00012), '1.2e-4');
  const choices = {...kDefaults, view: 'map', layer: 'decoder.0.cross', head: 2, query: 3, merge: false, scale: 'log', state: 'a/b&c'};
  assert.deepEqual({...kDefaults, ...fromLink(toLink(choices))}, choices);
  assert.deepEqual(fromLink('#view=nowhere&head=x&__proto__=1&scale=log&layer=%'), {scale: 'log'});
  assert.equal(escaped('</script>"&\u0001'), '&#60;/script&#62;&#34;&#38;\ufffd');
});

test('unlike texts are not subtracted', () => {
  const a = traces.get('transformer.json'), b = traces.get('transformer-long.json');
  const of = (trace) => panelOf(trace, trace.raw.attn[0], 0, {merge: false, special: 'show'});
  assert.equal(unlike(of(a), of(a)), undefined);
  assert.match(unlike(of(a), of(b)), /^there are 6 rows here and 14 there$/);
});

test('axes hold all values between round numbers', () => {
  for (const [low, high] of [[0, 1], [0.3, 0.71], [-5, 12], [99, 101], [1e-9, 3e-9], [-2e6, -1e6]])
    for (const most of [3, 6, 10]) {
      const axis = axisOf('linear', [high, low], most), steps = axis.ticks.slice(1).map((x, i) => x - axis.ticks[i]);
      assert.ok(axis.low <= low && axis.high >= high && axis.ticks.length <= most + 2, `${low} ${high} ${axis.ticks}`);
      for (const step of steps) near(step / steps[0], 1, 1e-6, 'even');
      near(axis.at(axis.ticks[0]), 0, 1e-9, 'first');
      near(axis.at(axis.ticks[axis.ticks.length - 1]), 1, 1e-9, 'last');
    }
  assert.deepEqual(axisOf('linear', [0.3, 0.71], 5).ticks, [0.3, 0.4, 0.5, 0.6, 0.7, 0.8]);
  assert.deepEqual(axisOf('log', [3, 400], 9).ticks, [2, 5, 10, 20, 50, 100, 200, 500]);
  assert.deepEqual(axisOf('log', [1, 1e6], 4).ticks, [1, 100, 1e4, 1e6]);
  near(axisOf('log', [1, 100], 4).at(10), 0.5, 1e-12, 'log');
  assert.deepEqual(axisOf('log', [-1, 0, 5], 9).low > 0, true);
  for (const empty of [[], [NaN]]) assert.deepEqual(axisOf('linear', empty, 5).ticks, [0, 0.2, 0.4, 0.6, 0.8, 1]);
  for (const same of [[0], [7], [-3]]) assert.ok(axisOf('linear', same, 5).high > axisOf('linear', same, 5).low);
  assert.equal(stepOf(10, 5), 2);
  assert.deepEqual([1500, 20000, 2e6, 0.00025, 0, 0.1].map(tickText), ['1500', '20k', '2M', '2.5e-4', '0', '0.1']);
  assert.deepEqual([1 / 3, 1e-7, null, 12].map(valueText), ['0.3333', '1e-7', '–', '12']);
});

test('plots: gaps where nothing was measured, and what has no place', () => {
  const series = [{name: 'a', points: [[1, 5], [2, null], [3, 7], [4, -1]]}, {name: 'b,"', points: [[2, 1, 0.5, 2]]}];
  const plot = {title: 't', marks: 'lines', x: {label: 'x'}, y: {label: 'y', scale: 'log'}, series};
  const {x, y} = axesOf(plot, series, [5, 5]);
  assert.deepEqual(runs(series[0].points, x, y).map((run) => run.map((p) => p[0])), [[1], [3]]);
  assert.ok(y.low <= 0.5 && y.high >= 7, 'ranges belong to the axis');
  assert.equal(withoutPlace(plot, series), 1);
  assert.deepEqual(placesOf(series), [1, 2, 3, 4]);
  assert.equal(axesOf({...plot, y: {label: ''}, marks: 'bars'}, [series[1]], [5, 5]).y.low, 0, 'bars begin at 0');
  assert.equal(csvOf(plot).split('\n')[5], '"b,""",2,1,0.5,2');
  assert.throws(() => readReport('{"format":"heed-report","version":"2.0"}'), /version is '2.0', expected 1.x/);
  assert.throws(() => readReport('{}'), /format is 'undefined', expected 'heed-report'/);
});

test('effects: words have the recorded numbers, in every family', () => {
  let measured = 0, methods = 0, masked = 0;
  for (const [name, trace] of traces)
    for (const effect of trace.raw.effects ?? [])
      for (const layer of layersOf(effect, trace.layers(0))) {
        const own = methodsOf(effect, layer);
        methods += own.length;
        for (const method of own) {
          const rows = effectRows(trace, effect, layer, -1, method);
          near(rows.reduce((sum, one) => sum + Math.max(0, one.weight), 0), 1, 1e-5, `${name} ${layer.id}`);
          masked += rows.some((one) => one.weight === kMasked);
          const parts = layer.heads.map((_, h) => effectRows(trace, effect, layer, h, method));
          if (method === 'gradients') rows.forEach((one, i) => { if (one.method !== undefined) near(one.method, parts.reduce((sum, part) => sum + part[i].method, 0), 1e-6, 'heads are summed'); });
        }
        for (const one of effectRows(trace, effect, layer, 0, undefined)) measured += one.measured !== undefined;
        const words = (effect.left_out ?? []).filter((one) => one.change !== undefined && one.tokens.seq === layer.k.seq);
        const rows = effectRows(trace, effect, layer, 0, undefined);
        near(rows.reduce((sum, one) => sum + (one.measured ?? 0), 0), -words.reduce((sum, one) => sum + one.change, 0), 1e-9, `${name}: no word is lost`);
      }
  assert.ok(measured > 0 && methods > 0 && masked > 0, `${measured} ${methods} ${masked}`);
  const row = (weight, measured) => ({unit: {}, weight, method: undefined, measured});
  near(agreement([row(0.1, 1), row(0.2, -2), row(0.7, 3)]), 1, 1e-12, 'the same order, by size');
  near(agreement([row(0.7, 1), row(0.2, 2), row(0.1, 3)]), -1, 1e-12, 'the other way round');
  assert.equal(agreement([row(0.5, 1), row(0.5, undefined), row(kMasked, 2)]), undefined);
  const effect = (change) => ({left_out: [{change}, {}]});
  assert.equal(mostMeasured([effect(1), effect(-5), effect(2)]), 1);
});

test('the way of a word that matters: the word that was looked at, and the head in which that one had looked at it', () => {
  const raw = structuredClone(traces.get('transformer.json').raw), cross = raw.attn.filter((one) => one.role === 'cross' && one.q.seq === raw.output.seq).pop();
  const self = raw.attn.find((one) => one.role === 'self'), S = keysOf(self), H = self.heads.length, effect = raw.effects.find((one) => one.seq === raw.output.seq);
  const put = (name, values) => { raw.tensors[name] = {...raw.tensors[name], data: base64(new Uint8Array(Float32Array.from(values).buffer)), crc32: undefined}; };
  // The choice looks at word 1, and word 1 at word 0: in all heads of the first layer, and nowhere else.
  put(cross.weights, Array.from({length: H * queriesOf(cross) * S}, (_, i) => (i % S === 1 ? 1 : 0)));
  raw.attn.filter((one) => one.role === 'self').forEach((one) => put(one.weights, Array.from({length: H * S * S}, (_, i) => (i % S === (one === self ? 0 : S - 1) ? 1 : 0))));
  effect.left_out = effect.left_out.map((one) => ({...one, change: one.tokens.begin === cross.k.begin ? -3 : -0.1}));
  effect.heads = self.heads.map((head, h) => ({path: self.path, head, gradient: 0.1, off: h === 1 ? -2 : -0.5}));
  const trace = new Trace(raw, 'f'), rows = effectRows(trace, effect, cross, -1, undefined);
  const way = wayOf(trace, effect, cross, rows, trace.layers(0));
  assert.equal(way.matters, rows[0]);
  assert.equal(way.looked, rows[1]);
  assert.deepEqual([way.by.layer.path, way.by.head, way.by.weight, way.by.off], [self.path, 1, 1, -2]);
  put(self.weights, Array.from({length: H * S * S}, (_, i) => (i % S === 2 ? 1 : 0)));
  assert.equal(wayOf(new Trace(raw, 'f'), effect, cross, rows, new Trace(raw, 'f').layers(0)).by, undefined, 'no head looked at it most');
  effect.left_out.forEach((one, i) => { one.change = i === 1 ? 5 : 0.1; });
  const direct = effectRows(trace, effect, cross, -1, undefined);
  assert.equal(wayOf(trace, effect, cross, direct, trace.layers(0)).looked, direct[1], 'looked at itself');
  assert.equal(wayOf(trace, effect, cross, direct.map((one) => ({...one, measured: undefined})), trace.layers(0)), undefined);
});

test('rows that do not sum to 1 are found', () => {
  for (const [name, trace] of traces)
    for (const layer of trace.raw.attn) {
      const panel = panelOf(trace, layer, 0, {merge: true, special: 'show'});
      for (let t = 0; t < panel.queries.length; ++t) assert.equal(rowError(panel, t), undefined, `${name} ${layer.id} ${t}`);
      if (!panel.cells || !layer.weights) continue;
      panel.cells[0] = Math.max(0, panel.cells[0]) + 0.5;
      near(rowError(panel, 0), 0.5, 1e-4, name);
    }
});

test('tiles are the weights that were recorded, and their maxima from afar', () => {
  let compared = 0;
  for (const [name, trace] of traces)
    for (const layer of trace.raw.attn)
      layer.heads.forEach((_, h) => {
        const head = longHead(trace, layer, h), keys = trace.tensor(layer.top?.keys), weights = trace.tensor(layer.top?.weights);
        if (!head || !keys || !weights) return;
        const near_ = makeTile(head, 0, 0, 0), far = makeTile(head, 2, 0, 0), width = keys.shape[2];
        for (let t = 0; t < head.T; ++t)
          for (let i = 0; i < width; ++i) {
            const at = (h * head.T + t) * width + i;
            if (keys.data[at] === 4294967295) continue;
            const s = keys.data[at] - layer.k.begin;
            near(weightAt(head, t, s), weights.data[at], head.error + weights.data[at] * 2 ** -11 + 1e-6, `${name} ${layer.id} ${t} ${s}`);
            assert.equal(near_[t * kTile + s], Math.fround(weightAt(head, t, s)));
            ++compared;
          }
        assert.equal(near_[kTile * head.T], kOutside);
        for (let t = 0; t < head.T; ++t)
          for (let s = 0; s < head.S; ++s) {
            assert.equal(weightAt(head, t, s) === kHidden, !sees(layer, t, s));
            assert.ok(far[Math.floor(t / 4) * kTile + Math.floor(s / 4)] >= near_[t * kTile + s]);
          }
      });
  assert.ok(compared > 100, `${compared}`);
  assert.deepEqual([40, 1, 0.5, 0.3, 0.01].map(levelOf), [0, 0, 1, 2, 5]);
});
