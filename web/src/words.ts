// SPDX-License-Identifier: Apache-2.0
// Tokens as what a reader sees: units of one token each, or of all tokens of a word. Rows and columns of every picture
// are units. Merging keeps rows summing to one: keys are summed, queries are averaged.
import type {Attention, Sequence, Span, Step, Trace} from './trace';

export interface Unit {
  label: string;     // what is printed
  detail: string;    // longer, for who asks
  index: number[];   // rows or columns of the layer
  special: boolean;
}

export function shown(piece: string): string { return piece.replace(/▁/g, ' ').trim() || piece; }

export function tokenLabel(sequence: Sequence, at: number): string {
  const token = sequence.tokens[at];
  if (!token) return '?';
  if (token.special || token.text.trim() === '') return shown(token.piece);
  return token.text.trim();
}

interface Item { label: string; detail: string; special: boolean; word?: number; glue: string }

function grouped(items: Item[], merge: boolean): Unit[] {
  const units: Unit[] = [];
  let word: number | undefined;
  items.forEach((item, i) => {
    const last = units[units.length - 1];
    if (merge && last && item.word !== undefined && item.word === word && !item.special && !last.special) {
      last.label += item.glue;
      last.detail += ' + ' + item.detail;
      last.index.push(i);
    } else {
      units.push({label: item.label, detail: item.detail, index: [i], special: item.special});
    }
    word = item.word;
  });
  return units;
}

export function keyUnits(trace: Trace, span: Span, merge: boolean): Unit[] {
  const sequence = trace.sequence(span.seq);
  const items: Item[] = [];
  for (let i = span.begin; i < span.end; ++i) {
    const token = sequence.tokens[i], label = tokenLabel(sequence, i);
    items.push({label, detail: `token ${i} '${token?.piece ?? '?'}'`, special: token?.special ?? false, word: token?.word, glue: label});
  }
  return grouped(items, merge);
}

// Does a row of this layer belong to the token that was chosen there? In what writes, yes; in what tags, no.
export function writes(trace: Trace, seq: string): boolean {
  return trace.raw.model.task !== 'tag' && trace.raw.model.task !== 'classify' && trace.results.some((one) => one.seq === seq && one.steps.length > 0);
}

export function stepsByRow(trace: Trace, seq: string): Map<number, Step> {
  const result = trace.results.find((one) => one.seq === seq);
  return new Map((result?.steps ?? []).map((step) => [step.row, step]));
}

// The query at token t chose the next one: where there is a choice, that word names the row.
export function queryUnits(trace: Trace, layer: Attention, merge: boolean): Unit[] {
  const span = layer.q;
  if (!writes(trace, span.seq)) return keyUnits(trace, span, merge);
  const sequence = trace.sequence(span.seq), steps = stepsByRow(trace, span.seq);
  const items: Item[] = [];
  for (let i = span.begin; i < span.end; ++i) {
    const step = steps.get(i), next = sequence.tokens[i + 1];
    const read = tokenLabel(sequence, i);
    if (!step) {
      items.push({label: read, detail: `reads '${read}'`, special: sequence.tokens[i]?.special ?? false, word: undefined, glue: read});
      continue;
    }
    const label = next ? tokenLabel(sequence, i + 1) : shown(step.piece);
    items.push({label, detail: `chosen after '${read}' was read`, special: next ? next.special : true, word: next?.word, glue: label});
  }
  return grouped(items, merge);
}

// weights [T,S] of tokens -> of units.
export function mergeRows(rows: Float64Array, S: number, queries: Unit[], keys: Unit[]): Float64Array {
  const out = new Float64Array(queries.length * keys.length);
  queries.forEach((query, i) => keys.forEach((key, j) => {
    let sum = 0;
    for (const t of query.index) for (const s of key.index) sum += rows[t * S + s];
    out[i * keys.length + j] = sum / query.index.length;
  }));
  return out;
}
