// SPDX-License-Identifier: Apache-2.0
// What is computed on the page: rows of a head, the walk, statistics of heads, scales. All in double.
import {clamp01} from './scale';
import type {Attention, Trace} from './trace';

export const kMasked = -1;       // cells: the mask hides the key
export const kNotCaptured = -2;  // cells: nobody wrote it down
export const kLeftOut = -3;      // cells: the reader chose to leave this key out

export function sees(layer: Attention, t: number, s: number): boolean {
  const {mask} = layer, p = layer.q.begin + t, key = layer.k.begin + s;
  if (mask.keys !== undefined && key >= mask.keys) return false;
  if (mask.type === 'causal') return key <= p + mask.offset;
  if (mask.type === 'window')
    return key >= p + mask.offset - (mask.left ?? Infinity) && key <= p + mask.offset + (mask.right ?? Infinity);
  return true;
}

// How many keys a query sees.
export function seenBy(layer: Attention, t: number): number {
  const {mask} = layer, p = layer.q.begin + t + mask.offset;
  let first = layer.k.begin, last = (mask.keys === undefined ? layer.k.end : Math.min(layer.k.end, mask.keys)) - 1;
  if (mask.type === 'causal') last = Math.min(last, p);
  if (mask.type === 'window') { first = Math.max(first, p - (mask.left ?? Infinity)); last = Math.min(last, p + (mask.right ?? Infinity)); }
  return Math.max(0, last - first + 1);
}

// Does any query of a block see any of its keys?
export function seesAny(layer: Attention, t0: number, t1: number, s0: number, s1: number): boolean {
  const {mask} = layer, from = layer.q.begin + t0 + mask.offset, to = layer.q.begin + t1 - 1 + mask.offset;
  const first = layer.k.begin + s0, last = Math.min(layer.k.begin + s1, mask.keys ?? Infinity) - 1;
  if (last < first) return false;
  if (mask.type === 'causal') return first <= to;
  if (mask.type === 'window') return last >= from - (mask.left ?? Infinity) && first <= to + (mask.right ?? Infinity);
  return true;
}

// A pooled map [rows,columns] of the layer, with kMasked where nothing of a block may be seen: its 0 is none of the model's.
export function maskPooled(layer: Attention, values: ArrayLike<number>, rows: number, columns: number): Float64Array {
  const pools = (i: number, n: number, all: number): [number, number] => { const begin = Math.floor((i * all) / n); return [begin, Math.max(begin + 1, Math.floor(((i + 1) * all) / n))]; };
  const T = layer.pooled?.queries ?? queriesOf(layer), S = layer.pooled?.keys ?? keysOf(layer);
  return Float64Array.from(values, (value, at) => (seesAny(layer, ...pools(Math.floor(at / columns), rows, T), ...pools(at % columns, columns, S)) ? value : kMasked));
}

export const queriesOf = (layer: Attention) => layer.q.end - layer.q.begin;
export const keysOf = (layer: Attention) => layer.k.end - layer.k.begin;

const kMostCells = 250_000;  // of rows that were not captured whole: more are looked up one by one (panel.ts)

// Rows [T,S] of one head, or their mean over the heads (head -1). Where whole rows were not captured, what the strongest
// keys have, and kNotCaptured elsewhere; undefined where even these are missing, or T x S would not fit a page.
export function rowsOf(trace: Trace, layer: Attention, head: number): Float64Array | undefined {
  const T = queriesOf(layer), S = keysOf(layer), n = T * S;
  const weights = trace.tensor(layer.weights);
  if (weights) {
    const out = new Float64Array(n);
    const places = head < 0 ? layer.heads.map((_, i) => i) : [head];
    for (const place of places)
      for (let i = 0; i < n; ++i) out[i] += weights.data[place * n + i] / places.length;
    return out;
  }
  const keys = trace.tensor(layer.top?.keys), strongest = trace.tensor(layer.top?.weights);
  if (!keys || !strongest || n > kMostCells || head < 0) return undefined;
  const out = new Float64Array(n).fill(kNotCaptured), k = keys.shape[2];
  for (let t = 0; t < T; ++t)
    for (let i = 0; i < k; ++i) {
      const at = (head * T + t) * k + i, key = keys.data[at] - layer.k.begin;
      if (keys.data[at] !== 4294967295 && key >= 0 && key < S) out[t * S + key] = strongest.data[at];
    }
  return out;
}

export function maskRows(layer: Attention, rows: Float64Array): Float64Array {
  const S = keysOf(layer);
  return rows.map((value, i) => (sees(layer, Math.floor(i / S), i % S) ? value : kMasked));
}

export function entropy(row: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < row.length; ++i) if (row[i] > 0) sum -= row[i] * Math.log(row[i]);
  return sum;
}

// ---- the walk ----

export interface Walk {
  q: Float64Array; keys: Float64Array[]; values: Float64Array[] | undefined; w: Float64Array | undefined;
  terms: Float64Array[];   // of each key: its products, or w tanh(q + k)
  raw: Float64Array;       // their sums
  scores: Float64Array;    // times the scale, after the softcap, with the bias
  bias: Float64Array;
  visible: boolean[];
  max: number; exps: Float64Array; Z: number; weights: Float64Array; lse: number;
  entropy: number; effective: number;
  mix: Float64Array | undefined; norms: Float64Array | undefined;
  differences: { name: string; difference: number }[];  // from what was recorded
}

function rowOf(data: ArrayLike<number>, at: number, width: number): Float64Array {
  return Float64Array.from({length: width}, (_, i) => data[at * width + i]);
}
const largest = (a: ArrayLike<number>, b: (i: number) => number) => {
  let most = 0;
  for (let i = 0; i < a.length; ++i) most = Math.max(most, Math.abs(a[i] - b(i)));
  return most;
};

// One query of one head again, from the captured Q, K and V. A string says why it cannot be.
export function walk(trace: Trace, layer: Attention, head: number, t: number): Walk | string {
  const Q = trace.tensor(layer.Q), K = trace.tensor(layer.K), V = trace.tensor(layer.V), O = trace.tensor(layer.O);
  if (!Q || !K) return 'queries and keys of this layer were not captured';
  const T = queriesOf(layer), S = keysOf(layer), D = Q.shape[2], group = layer.key_heads[head];
  const additive = layer.score.fn === 'additive', {scale, softcap, slopes} = layer.score;
  const W = trace.tensor(layer.additive?.w);
  if (additive && !W) return 'the vector w of the additive score was not captured';
  const q = rowOf(Q.data, head * T + t, D), w = additive ? rowOf(W!.data, head, D) : undefined;
  const keys = Array.from({length: S}, (_, s) => rowOf(K.data, group * S + s, D));
  const terms = keys.map((k) => q.map((x, i) => (w ? w[i] * Math.tanh(x + k[i]) : x * k[i])));
  const raw = Float64Array.from(terms, (one) => one.reduce((a, b) => a + b, 0));
  const bias = raw.map((_, s) => (slopes?.length ? -slopes[head] * Math.abs(layer.q.begin + t - layer.k.begin - s) : 0));
  const scores = raw.map((x, s) => {
    const scaled = x * scale;
    return (softcap ? softcap * Math.tanh(scaled / softcap) : scaled) + bias[s];
  });
  const recorded = trace.tensor(layer.weights);
  const seen = (s: number) => sees(layer, t, s) && !(layer.mask.type === 'other' && recorded && recorded.data[(head * T + t) * S + s] === 0);
  const visible = keys.map((_, s) => seen(s));
  let max = -Infinity;
  scores.forEach((x, s) => { if (visible[s]) max = Math.max(max, x); });
  const exps = scores.map((x, s) => (visible[s] ? Math.exp(x - max) : 0));
  const Z = exps.reduce((a, b) => a + b, 0);
  const weights = exps.map((x) => (Z > 0 ? x / Z : 0));
  const H = entropy(weights), lse = max + Math.log(Z);
  const values = V && Array.from({length: S}, (_, s) => rowOf(V.data, group * S + s, V.shape[2]));
  const mix = values && values.reduce((sum, v, s) => sum.map((x, i) => x + weights[s] * v[i]), new Float64Array(V!.shape[2]));
  const norms = values && Float64Array.from(values, (v, s) => weights[s] * Math.sqrt(v.reduce((a, x) => a + x * x, 0)));
  const differences: Walk['differences'] = [];
  if (recorded) differences.push({name: 'weights', difference: largest(weights, (s) => recorded.data[(head * T + t) * S + s])});
  const sums = trace.tensor(layer.lse);
  if (sums && Number.isFinite(lse)) differences.push({name: 'log-sum-exp', difference: Math.abs(lse - sums.data[head * T + t])});
  if (O && mix) differences.push({name: 'output', difference: largest(mix, (i) => O.data[(head * T + t) * mix.length + i])});
  return {q, keys, values, w, terms, raw, scores, bias, visible, max, exps, Z, weights, lse, entropy: H, effective: Math.exp(H), mix, norms, differences};
}

// ---- heads ----

export interface HeadStats { entropy: number | undefined; diagonal: number | undefined; sink: number | undefined; sinkKey: number }

// entropy: mean of rows, over the log of the keys that a row sees: 0 one key, 1 all alike. diagonal: mean weight of the key at the
// query's own place. sink: mean weight of the key that gets most of all queries.
export function headStats(trace: Trace, layer: Attention, head: number): HeadStats {
  const T = queriesOf(layer), S = keysOf(layer), rows = trace.tensor(layer.weights);
  const H = trace.tensor(layer.stats.entropy);
  let sum = 0, counted = 0;
  if (H) for (let t = 0; t < T; ++t) {
    const n = seenBy(layer, t);
    if (n > 1) { sum += H.data[head * T + t] / Math.log(n); ++counted; }
  }
  const result: HeadStats = {entropy: counted ? sum / counted : undefined, diagonal: undefined, sink: undefined, sinkKey: -1};
  const received = rows ? undefined : trace.tensor(layer.pooled?.received);
  if (rows && T) {
    const got = new Float64Array(S);
    let diagonal = 0;
    for (let t = 0; t < T; ++t)
      for (let s = 0; s < S; ++s) {
        const weight = rows.data[(head * T + t) * S + s];
        got[s] += weight / T;
        if (layer.k.begin + s === layer.q.begin + t) diagonal += weight / T;
      }
    result.sinkKey = got.indexOf(Math.max(...got));
    result.sink = got[result.sinkKey];
    result.diagonal = diagonal;
  } else if (received && layer.pooled) {
    for (let s = 0; s < S; ++s) {
      const share = received.data[head * S + s] / layer.pooled.queries;
      if (share > (result.sink ?? -1)) { result.sink = share; result.sinkKey = s; }
    }
  }
  return result;
}

// ---- scales ----

export type ScaleName = 'linear' | 'sqrt' | 'log' | 'row';
export const kScales: Record<ScaleName, string> = {linear: 'linear, 0 to 1', sqrt: 'square root, 0 to 1', log: 'logarithm, 0.0001 to 1', row: 'each row by its own maximum'};

export function scaleOf(name: ScaleName): { (value: number, rowMax: number): number; ticks: number[] } {
  const scale = (value: number, rowMax: number) => {
    if (name === 'sqrt') return Math.sqrt(clamp01(value));
    if (name === 'log') return value <= 0 ? 0 : clamp01(1 + Math.log10(value) / 4);
    if (name === 'row') return rowMax > 0 ? clamp01(value / rowMax) : 0;
    return clamp01(value);
  };
  return Object.assign(scale, {ticks: name === 'log' ? [1e-4, 1e-3, 1e-2, 0.1, 1] : [0, 0.25, 0.5, 0.75, 1]});
}

// The 1-based rank of one of a row's values among those that can be seen, and how many these are.
export function rankOf(row: ArrayLike<number>, at: number): [number, number] {
  let rank = 1, of = 0;
  for (let i = 0; i < row.length; ++i) {
    if (row[i] < 0) continue;
    ++of;
    if (row[i] > row[at]) ++rank;
  }
  return [rank, of];
}

// Leaves columns out and lets what remains of a row sum to what the row did; says what was taken away, of each row.
export function withoutColumns(rows: Float64Array, S: number, drop: boolean[]): { rows: Float64Array; removed: Float64Array } {
  const T = S ? rows.length / S : 0, out = rows.slice(), removed = new Float64Array(T);
  for (let t = 0; t < T; ++t) {
    let kept = 0;
    for (let s = 0; s < S; ++s) {
      const value = rows[t * S + s];
      if (value <= 0) continue;
      if (drop[s]) removed[t] += value; else kept += value;
    }
    for (let s = 0; s < S; ++s) {
      if (drop[s]) out[t * S + s] = kLeftOut;
      else if (out[t * S + s] > 0) out[t * S + s] *= kept > 0 ? (kept + removed[t]) / kept : 0;
    }
  }
  return {rows: out, removed};
}

export function number(value: number, digits = 3): string {
  if (value !== 0 && Math.abs(value) < 10 ** -digits / 2) return value.toExponential(1).replace(/^-/, '−');
  return value.toFixed(digits).replace(/^-(0\.0*)$/, '$1').replace('-', '−');
}
