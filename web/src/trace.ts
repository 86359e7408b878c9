// SPDX-License-Identifier: Apache-2.0
// A trace as heed writes it (docs/trace.md): its types, and its tensors as numbers.
// Not here: what is made of the numbers (numbers.ts), or words (words.ts).

export interface Token { id: number; piece: string; text: string; start?: number; end?: number; word?: number; special: boolean; prob?: number }
export interface Sequence { id: string; role: 'source' | 'target' | 'text' | 'learned'; text: string; tokens: Token[] }
export interface Span { seq: string; begin: number; end: number }
export interface Score { fn: 'dot' | 'additive'; scale: number; softcap?: number; slopes?: number[] }
export interface Mask { type: 'none' | 'causal' | 'window' | 'other'; offset: number; left?: number; right?: number; keys?: number }
export interface PooledMap { head: number; mean?: string; max?: string }
export interface Attention {
  id: string; path: string; stack: string; layer: number; role: 'self' | 'masked' | 'cross';
  heads: number[]; key_heads: number[]; q: Span; k: Span; score: Score; mask: Mask;
  weights?: string; lse?: string; Q?: string; K?: string; V?: string; O?: string;
  additive?: { w?: string }; feed?: { state: string; at: 'prev' | 'current' };
  stats: { entropy?: string; max?: string; row_sum_error: number };
  top?: { keys?: string; weights?: string };
  pooled?: { queries: number; keys: number; maps: PooledMap[]; received?: string };
  tiles?: { head: number; q?: string; k?: string; lse?: string; error: number }[];
}
export interface States {
  path: string; stack: string; cell: 'rnn' | 'gru' | 'lstm'; layer: number; direction: 'forward' | 'backward'; tokens: Span;
  h?: string; c?: string; names?: string[]; gates?: string; h0?: string; c0?: string;
}
export interface Choice { id: number; piece: string; logprob: number }
export interface Step extends Choice { row: number; forced: boolean; alternatives?: Choice[] }
export interface Result { seq: string; text: string; logprob: number; score: number; finished: boolean; steps: Step[] }
export interface Shares { source?: string; target?: string; baseline?: number; error?: number }
export interface Effect {
  seq: string; row: number; name: string; against?: number; value: number;
  left_out?: { tokens: Span; change?: number }[];
  heads?: { path: string; head: number; gradient: number; off?: number }[];
  links?: { path: string; values?: string; gradients?: string }[];
  integrated?: Shares; rollout?: Shares;
}
export interface RawTensor { shape: number[]; dtype: 'f32' | 'f16' | 'u8n' | 'u32'; enc: string; data: string; min?: number; max?: number; crc32?: number }
export interface RawTrace {
  format: string; version: string; tool: string; label?: string;
  model: { kind: string; task: string; layers: number; heads: number; kv_heads: number; width: number; head_width: number };
  sequences: Sequence[]; attn: Attention[]; states: States[];
  output: Result & { others?: Result[] };
  effects?: Effect[];
  capture: { full: boolean; dropped: string[]; precision: string; tolerance: number };
  tensors: Record<string, RawTensor>;
}
export interface Tensor { shape: number[]; data: Float32Array | Float64Array | Uint32Array }

const kDigits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const kValue = new Int8Array(128).fill(-1);
for (let i = 0; i < 64; ++i) kValue[kDigits.charCodeAt(i)] = i;

export function fromBase64(text: string): Uint8Array {
  if (text.length % 4) throw new Error(`base64 has ${text.length} digits, expected a multiple of 4: it was cut off`);
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  const out = new Uint8Array((text.length / 4) * 3 - padding);
  for (let i = 0, to = 0; i < text.length; i += 4) {
    let bits = 0;
    for (let j = 0; j < 4; ++j) {
      const pad = i + j >= text.length - padding;
      const value = pad ? 0 : kValue[text.charCodeAt(i + j)] ?? -1;
      if (value < 0) throw new Error(`base64 has '${text[i + j]}' at ${i + j}, expected a digit of base64`);
      bits = (bits << 6) | value;
    }
    for (let shift = 16; shift >= 0 && to < out.length; shift -= 8) out[to++] = (bits >> shift) & 255;
  }
  return out;
}

export function fromHalf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

let crcTable: Uint32Array | undefined;
export function crc32(bytes: Uint8Array): number {
  crcTable ??= Uint32Array.from({length: 256}, (_, n) => {
    for (let k = 0; k < 8; ++k) n = n & 1 ? 0xEDB88320 ^ (n >>> 1) : n >>> 1;
    return n >>> 0;
  });
  let crc = 0xFFFFFFFF;
  for (let i = 0; i < bytes.length; ++i) crc = crcTable[(crc ^ bytes[i]) & 255] ^ (crc >>> 8);
  return (crc ^ 0xFFFFFFFF) >>> 0;
}

const kBytes = {f32: 4, f16: 2, u8n: 1, u32: 4};

export function decode(raw: RawTensor, name: string): Tensor {
  const bytes = fromBase64(raw.data);
  const n = raw.shape.reduce((a, b) => a * b, 1), wide = kBytes[raw.dtype];
  if (!wide) throw new Error(`tensor '${name}' has the type '${raw.dtype}', expected f32, f16, u8n or u32`);
  if (bytes.length !== n * wide) throw new Error(`tensor '${name}' has ${bytes.length} bytes, expected ${n * wide}: it was cut off`);
  if (raw.crc32 !== undefined && crc32(bytes) !== raw.crc32)
    throw new Error(`tensor '${name}' has the check sum ${crc32(bytes)}, expected ${raw.crc32}: it is not what was written`);
  const view = new DataView(bytes.buffer);
  if (raw.dtype === 'u32') return {shape: raw.shape, data: Uint32Array.from({length: n}, (_, i) => view.getUint32(4 * i, true))};
  const data = new Float32Array(n);
  const low = raw.min ?? 0, step = ((raw.max ?? 1) - low) / 255;
  for (let i = 0; i < n; ++i) {
    if (raw.dtype === 'f32') data[i] = view.getFloat32(4 * i, true);
    else if (raw.dtype === 'f16') data[i] = fromHalf(view.getUint16(2 * i, true));
    else data[i] = low + bytes[i] * step;
  }
  return {shape: raw.shape, data};
}

// One trace with its tensors decoded as they are asked for.
export class Trace {
  private decoded = new Map<string, Tensor>();
  private sequences = new Map<string, Sequence>();
  readonly results: Result[];

  constructor(readonly raw: RawTrace, readonly name: string) {
    if (raw?.format !== 'heed-trace') throw new Error(`${name}: format is '${String(raw?.format)}', expected 'heed-trace'`);
    if (!/^1\.\d+$/.test(raw.version)) throw new Error(`${name}: version is '${raw.version}', expected 1.x: it was written by another heed`);
    for (const field of ['model', 'sequences', 'attn', 'states', 'output', 'capture', 'tensors'] as const)
      if (!raw[field]) throw new Error(`${name}: '${field}' is missing, expected a whole trace`);
    for (const one of raw.sequences) this.sequences.set(one.id, one);
    for (const one of raw.attn)
      for (const span of [one.q, one.k])
        if (!this.sequences.has(span.seq)) throw new Error(`${name}: ${one.id} is over '${span.seq}', expected one of the sequences`);
    this.results = [raw.output, ...(raw.output.others ?? [])];
  }
  tensor(ref: string | undefined): Tensor | undefined {
    if (!ref) return undefined;
    let found = this.decoded.get(ref);
    if (!found) {
      const raw = this.raw.tensors[ref];
      if (!raw) throw new Error(`${this.name}: there is no tensor '${ref}'`);
      this.decoded.set(ref, found = decode(raw, ref));
    }
    return found;
  }
  sequence(id: string): Sequence { return this.sequences.get(id)!; }
  // The layers that one hypothesis came from: those over the input, and those over its own tokens.
  layers(hypothesis: number): Attention[] {
    const others = new Set(this.results.filter((_, i) => i !== hypothesis).map((one) => one.seq));
    others.delete(this.results[hypothesis]?.seq);
    return this.raw.attn.filter((one) => !others.has(one.q.seq));
  }
  states(hypothesis: number): States[] {
    const others = new Set(this.results.filter((_, i) => i !== hypothesis).map((one) => one.seq));
    others.delete(this.results[hypothesis]?.seq);
    return this.raw.states.filter((one) => !others.has(one.tokens.seq));
  }
  input(): Sequence { return this.raw.sequences.find((one) => one.role === 'source') ?? this.raw.sequences[0]; }
}

export function readTraces(text: string, name: string): Trace[] {
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch (error) {
    throw new Error(`${name}: it is not whole JSON text (${(error as Error).message})`);
  }
  return (Array.isArray(raw) ? raw : [raw]).map((one, i) => new Trace(one as RawTrace, i ? `${name} [${i}]` : name));
}
