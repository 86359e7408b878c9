// SPDX-License-Identifier: Apache-2.0
// Any weight of a long head, from its queries, keys and row statistics: exp(score - lse). A tile is kTile x kTile cells, each the
// largest weight of a block of 2^level x 2^level tokens (a mean would wipe single links out). Also run by a worker, so nothing here
// knows the page.

export const kTile = 128, kHidden = -1, kOutside = -2, kFinest = 0, kCoarsest = 4;

export interface LongHead {
  T: number; S: number; D: number; q: Float32Array; k: Float32Array; lse: Float32Array;
  scale: number; softcap: number; slope: number; w: Float32Array | undefined;  // w: of an additive score
  begin: [number, number];  // the first query and key in their sequences
  low: number; high: number; keys: number;  // of a query at p: p + low <= key <= p + high, and key < keys
}

export function weightAt(head: LongHead, t: number, s: number): number {
  const p = head.begin[0] + t, key = head.begin[1] + s;
  if (key < p + head.low || key > p + head.high || key >= head.keys) return kHidden;
  const {D, q, k, w} = head;
  let sum = 0;
  if (w) for (let d = 0; d < D; ++d) sum += w[d] * Math.tanh(q[t * D + d] + k[s * D + d]);
  else for (let d = 0; d < D; ++d) sum += q[t * D + d] * k[s * D + d];
  let score = sum * head.scale;
  if (head.softcap) score = head.softcap * Math.tanh(score / head.softcap);
  return Math.min(1, Math.exp(score - head.slope * Math.abs(p - key) - head.lse[t]));
}

export function makeTile(head: LongHead, level: number, row: number, column: number): Float32Array {
  const out = new Float32Array(kTile * kTile).fill(kOutside), block = 2 ** level;
  for (let i = 0; i < kTile; ++i)
    for (let j = 0; j < kTile; ++j) {
      const t0 = (row * kTile + i) * block, s0 = (column * kTile + j) * block;
      if (t0 >= head.T || s0 >= head.S) continue;
      let most = kHidden;
      for (let t = t0; t < Math.min(head.T, t0 + block); ++t)
        for (let s = s0; s < Math.min(head.S, s0 + block); ++s) most = Math.max(most, weightAt(head, t, s));
      out[i * kTile + j] = most;
    }
  return out;
}
