// SPDX-License-Identifier: Apache-2.0
// What a choice owes to the words that were read, by several methods, word by word. Numbers come from the trace alone.
import {kMasked, kNotCaptured, rowsOf, keysOf, sees} from './numbers';
import type {Attention, Effect, Trace} from './trace';
import {keyUnits, type Unit} from './words';

export type Method = 'gradients' | 'values' | 'integrated' | 'rollout';
export const kMethods: Record<Method, { name: string; short: string; signed: boolean }> = {
  gradients: {name: 'weight × gradient', short: 'predicted', signed: true},
  values: {name: 'weight × size of the value', short: 'passed on', signed: false},
  integrated: {name: 'integrated gradients', short: 'integrated', signed: true},
  rollout: {name: 'rollout', short: 'rollout', signed: false},
};

// undefined: not captured, or not measured. `measured` is what the word gave: with it minus without it.
export interface EffectRow { unit: Unit; weight: number; method: number | undefined; measured: number | undefined }

// Layers whose query chose the word that is explained.
export const layersOf = (effect: Effect, layers: Attention[]): Attention[] =>
  layers.filter((one) => one.q.seq === effect.seq && effect.row >= one.q.begin && effect.row < one.q.end && one.weights);

export function methodsOf(effect: Effect, layer: Attention | undefined): Method[] {
  const links = effect.links?.find((one) => one.path === layer?.path);
  return (Object.keys(kMethods) as Method[]).filter((one) => (one === 'gradients' || one === 'values' ? links?.[one] : effect[one]));
}

// Of heads together: gradients are summed, as each is a share of the same number; sizes are averaged, as weights are.
function tokensOf(trace: Trace, effect: Effect, layer: Attention, head: number, method: Method): Float64Array | undefined {
  const S = keysOf(layer), out = new Float64Array(S);
  if (method === 'integrated' || method === 'rollout') {
    const side = trace.sequence(layer.k.seq).role === 'source' ? 'source' : 'target', all = trace.tensor(effect[method]?.[side]);
    return all && out.map((_, s) => all.data[layer.k.begin + s] ?? 0);
  }
  const tensor = trace.tensor(effect.links?.find((one) => one.path === layer.path)?.[method]);
  if (!tensor) return undefined;
  layer.heads.forEach((_, h) => {
    if (head < 0 || head === h) for (let s = 0; s < S; ++s) out[s] += tensor.data[h * S + s] / (method === 'values' && head < 0 ? layer.heads.length : 1);
  });
  return out;
}

export function effectRows(trace: Trace, effect: Effect, layer: Attention, head: number, method: Method | undefined): EffectRow[] {
  const S = keysOf(layer), t = effect.row - layer.q.begin, weights = rowsOf(trace, layer, head), values = method && tokensOf(trace, effect, layer, head, method);
  return keyUnits(trace, layer.k, true).map((unit) => {
    const sum = (of: ArrayLike<number>, from = 0) => unit.index.reduce((total, s) => total + of[from + s], 0);
    const left = (effect.left_out ?? []).filter((one) => one.tokens.seq === layer.k.seq && one.change !== undefined && unit.index.includes(one.tokens.begin - layer.k.begin));
    const masked = unit.index.every((s) => !sees(layer, t, s));
    return {
      unit, weight: masked ? kMasked : weights ? sum(weights, t * S) : kNotCaptured, method: masked || !values ? undefined : sum(values),
      measured: left.length ? -left.reduce((total, one) => total + one.change!, 0) : undefined,
    };
  });
}

// Spearman's rank correlation of weights and measured changes, by their sizes, over words that have both: whether a large weight
// means a large effect. Undefined for fewer than three.
export function agreement(rows: EffectRow[]): number | undefined {
  const both = rows.filter((one) => one.measured !== undefined && one.weight >= 0);
  if (both.length < 3) return undefined;
  const ranks = (values: number[]) => values.map((x) => values.reduce((rank, y) => rank + (y < x ? 1 : y === x ? 0.5 : 0), 0));
  const a = ranks(both.map((one) => one.weight)), b = ranks(both.map((one) => Math.abs(one.measured!)));
  const mean = (both.length) / 2, dot = (u: number[], v: number[]) => u.reduce((sum, x, i) => sum + (x - mean) * (v[i] - mean), 0);
  const norm = Math.sqrt(dot(a, a) * dot(b, b));
  return norm > 0 ? dot(a, b) / norm : undefined;
}

// How a word that matters can have come to the choice. `looked` is the word that the choice looked at most; if it is another one than
// `matters`, `by` is the head in a layer before in which `looked` itself had looked most at `matters`: of several, the one that
// is worth most to the choice. All of it is recorded; that it came this way is a guess until the head has been switched off.
export interface Way {
  matters: EffectRow; looked: EffectRow;
  by?: { layer: Attention; head: number; weight: number; gradient?: number; off?: number };
}

export function wayOf(trace: Trace, effect: Effect, layer: Attention, rows: EffectRow[], layers: Attention[]): Way | undefined {
  const largest = (of: (row: EffectRow) => number) => rows.reduce((best, row) => (of(row) > of(best) ? row : best), rows[0]);
  if (!rows.length) return undefined;
  const matters = largest((row) => Math.abs(row.measured ?? 0)), looked = largest((row) => (row.unit.special ? -1 : row.weight));
  if (!matters.measured || looked.weight <= 0) return undefined;
  const way: Way = {matters, looked};
  if (looked === matters) return way;
  for (const before of layers) {
    const weights = trace.tensor(before.weights), S = keysOf(before), shift = layer.k.begin - before.k.begin;
    if (before === layer || !weights || before.q.seq !== layer.k.seq || before.k.seq !== layer.k.seq || (before.stack === layer.stack && before.layer >= layer.layer)) continue;
    const T = before.q.end - before.q.begin, from = looked.unit.index.map((s) => s + layer.k.begin - before.q.begin).filter((t) => t >= 0 && t < T);
    before.heads.forEach((name, head) => {
      const gets = (row: EffectRow) => row.unit.index.reduce((sum, s) => sum + from.reduce((part, t) => part + weights.data[(head * T + t) * S + s + shift], 0), 0) / from.length;
      if (!from.length || rows.some((row) => gets(row) > gets(matters))) return;
      const worth = effect.heads?.find((one) => one.path === before.path && one.head === name), size = (one?: { gradient?: number; off?: number }) => Math.abs(one?.off ?? one?.gradient ?? 0);
      if (!way.by || size(worth) > size(way.by)) way.by = {layer: before, head, weight: gets(matters), gradient: worth?.gradient, off: worth?.off};
    });
  }
  return way;
}

// The one to begin with: where leaving a word out changes most.
export function mostMeasured(effects: Effect[]): number {
  const sizes = effects.map((one) => Math.max(0, ...(one.left_out ?? []).map((word) => Math.abs(word.change ?? 0))) + (one.against !== undefined ? 1e6 : 0));
  return sizes.indexOf(Math.max(...sizes));
}

// Those with the largest shares of any column, in the order of the text.
export function strongestRows(rows: EffectRow[], most: number): EffectRow[] {
  if (rows.length <= most) return rows;
  const columns = [(row: EffectRow) => row.weight, (row: EffectRow) => row.method ?? 0, (row: EffectRow) => row.measured ?? 0];
  const largest = columns.map((of) => Math.max(1e-12, ...rows.map((row) => Math.abs(of(row)))));
  const size = (row: EffectRow) => Math.max(...columns.map((of, i) => (i === 0 && row.weight < 0 ? 0 : Math.abs(of(row)) / largest[i])));
  const kept = new Set([...rows].sort((a, b) => size(b) - size(a)).slice(0, most));
  return rows.filter((row) => kept.has(row));
}
