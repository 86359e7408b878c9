// SPDX-License-Identifier: Apache-2.0
// What is looked at: one trace, one hypothesis, one layer, one head, as a matrix of units with all choices of the reader
// applied. And those choices themselves, as a link.
import type {Method} from './effect';
import {kMasked, kNotCaptured, keysOf, maskRows, rowsOf, withoutColumns, type ScaleName} from './numbers';
import {kHidden, weightAt, type LongHead} from './tile';
import {longHead} from './tiles';
import type {Attention, Trace} from './trace';
import {keyUnits, mergeRows, queryUnits, type Unit} from './words';

export const kViews = ['text', 'walk', 'map', 'heads', 'output', 'effect', 'compare', 'states', 'table'] as const;
export type ViewName = (typeof kViews)[number];

export interface Choices {
  view: ViewName; trace: number; hyp: number; layer: string; head: number;  // head: place in the layer; -1: mean of all
  query: number; key: number; pinned: boolean;   // units of the panel
  merge: boolean; special: 'show' | 'dim' | 'out'; scale: ScaleName; step: number; sort: string; pool: 'max' | 'mean'; state: string;
  why: number; method: Method;  // of the effects: which one, and the method beside the weights
}
export const kDefaults: Choices = {
  view: 'text', trace: 0, hyp: 0, layer: '', head: 0, query: 0, key: 0, pinned: false, merge: true, special: 'show', scale: 'linear',
  step: 1, sort: 'layer', pool: 'max', state: '', why: -1, method: 'gradients',
};

export function toLink(choices: Choices): string {
  const parts: string[] = [];
  for (const [name, value] of Object.entries(choices))
    if (value !== kDefaults[name as keyof Choices] || name === 'view') parts.push(`${name}=${encodeURIComponent(String(value))}`);
  return '#' + parts.join('&');
}

const kAllowed: Partial<Record<keyof Choices, readonly string[]>> = {
  view: kViews, special: ['show', 'dim', 'out'], scale: ['linear', 'sqrt', 'log', 'row'], sort: ['layer', 'importance', 'entropy', 'diagonal', 'sink'], pool: ['max', 'mean'], method: ['gradients', 'values', 'integrated', 'rollout'],
};

// What a link says of the choices; what it says wrongly is passed over.
export function fromLink(link: string): Partial<Choices> {
  const out: Record<string, unknown> = {};
  for (const part of link.replace(/^#/, '').split('&')) {
    const [name, text] = part.split('=') as [keyof Choices, string | undefined];
    if (text === undefined || !Object.prototype.hasOwnProperty.call(kDefaults, name)) continue;
    let value: string;
    try { value = decodeURIComponent(text); } catch { continue; }
    const like = kDefaults[name], allowed = kAllowed[name];
    if (allowed && !allowed.includes(value)) continue;
    if (typeof like === 'number') { if (/^-?\d+$/.test(value)) out[name] = Number(value); }
    else if (typeof like === 'boolean') out[name] = value === 'true';
    else out[name] = value;
  }
  return out as Partial<Choices>;
}

export interface Panel {
  trace: Trace; layer: Attention; head: number;
  queries: Unit[]; keys: Unit[];
  cells: Float64Array | undefined;  // [queries,keys]: a weight, or kMasked, kNotCaptured, kLeftOut
  removed: Float64Array | undefined;  // of each query, where keys are left out
  dropped: boolean[];  // keys that are special or a sink
  sinks: string[];
}

export const headName = (layer: Attention, head: number) => (head < 0 ? `mean of ${layer.heads.length} heads` : `head ${layer.heads[head]}`);
export const kSink = 0.5;  // a first key with this share of all weights is a sink

export function panelOf(trace: Trace, layer: Attention, head: number, choices: Pick<Choices, 'merge' | 'special'>): Panel {
  const queries = queryUnits(trace, layer, choices.merge), keys = keyUnits(trace, layer.k, choices.merge);
  const S = keysOf(layer);
  const rows = rowsOf(trace, layer, head);
  let cells: Float64Array | undefined, removed: Float64Array | undefined;
  if (rows) {
    const known = rows.map((x) => Math.max(0, x));
    cells = mergeRows(known, S, queries, keys);
    const masked = maskRows(layer, rows);
    // A cell of units is masked, or not captured, where all that it is made of is.
    for (let i = 0; i < queries.length; ++i)
      for (let j = 0; j < keys.length; ++j) {
        let all = true, missing = true;
        for (const t of queries[i].index) for (const s of keys[j].index) {
          if (masked[t * S + s] !== kMasked) all = false;
          if (masked[t * S + s] !== kNotCaptured && masked[t * S + s] !== kMasked) missing = false;
        }
        if (all) cells[i * keys.length + j] = kMasked;
        else if (missing) cells[i * keys.length + j] = kNotCaptured;
      }
  }
  const dropped = keys.map((key) => key.special), sinks: string[] = [];
  if (cells && queries.length >= 4 && keys.length >= 4) {
    let got = 0;
    for (let i = 0; i < queries.length; ++i) got += Math.max(0, cells[i * keys.length]) / queries.length;
    if (got >= kSink && !dropped[0]) { dropped[0] = true; sinks.push(keys[0].label); }
  }
  if (cells && choices.special === 'out') ({rows: cells, removed} = withoutColumns(cells, keys.length, dropped));
  return {trace, layer, head, queries, keys, cells, removed, dropped, sinks};
}

export const cell = (panel: Panel, i: number, j: number) => (panel.cells ? panel.cells[i * panel.keys.length + j] : row(panel, i)[j]);
export function row(panel: Panel, i: number): Float64Array {
  return panel.cells ? panel.cells.slice(i * panel.keys.length, (i + 1) * panel.keys.length) : strongestRow(panel, i);
}

// How far a row is from summing to 1, where that is more than the rounding of its weights (f32: 1e-6, with room for approximate
// exponentials) explains. Of rows that were captured whole; one that sees nothing sums to 0.
export function rowError(panel: Panel, i: number): number | undefined {
  const sum = panel.layer.weights ? row(panel, i).reduce((total, x) => total + Math.max(0, x), 0) : 0;
  return sum !== 0 && Math.abs(sum - 1) > 1e-4 ? sum - 1 : undefined;
}

// A row of a long text: its strongest keys are all that was captured.
function strongestRow({trace, layer, head, queries, keys}: Panel, i: number): Float64Array {
  const out = new Float64Array(keys.length).fill(kNotCaptured), kept = head < 0 ? undefined : longHead(trace, layer, head);
  if (kept && queries[i]) return computedRow(kept, queries[i], keys);
  const found = trace.tensor(layer.top?.keys), weights = trace.tensor(layer.top?.weights), query = queries[i];
  if (!found || !weights || !query || head < 0) return out;
  const T = layer.q.end - layer.q.begin, k = found.shape[2], unitOf = new Map<number, number>();
  keys.forEach((unit, j) => unit.index.forEach((s) => unitOf.set(s, j)));
  for (const t of query.index)
    for (let n = 0; n < k; ++n) {
      const at = (head * T + t) * k + n, j = unitOf.get(found.data[at] - layer.k.begin);
      if (j !== undefined) out[j] = Math.max(0, out[j]) + weights.data[at] / query.index.length;
    }
  return out;
}

// A row of a head whose queries and keys were kept.
function computedRow(head: LongHead, query: Unit, keys: Unit[]): Float64Array {
  return Float64Array.from(keys, (key) => {
    let sum = 0, seen = false;
    for (const t of query.index) for (const s of key.index) {
      const weight = weightAt(head, t, s);
      if (weight !== kHidden) { sum += weight / query.index.length; seen = true; }
    }
    return seen ? sum : kMasked;
  });
}

// The strongest keys of a row until they have `mass` of what it gives, strongest first.
export function strongest(values: ArrayLike<number>, mass: number, most: number): number[] {
  const order = Array.from({length: values.length}, (_, i) => i).filter((i) => values[i] > 0).sort((a, b) => values[b] - values[a] || a - b);
  const total = order.reduce((sum, i) => sum + values[i], 0);
  let sum = 0;
  const out: number[] = [];
  for (const i of order) {
    if (out.length >= most || sum >= mass * total) break;
    out.push(i);
    sum += values[i];
  }
  return out;
}
