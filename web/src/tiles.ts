// SPDX-License-Identifier: Apache-2.0
// Tiles of a long head as pictures: asked of a worker, kept, and painted in the colours of a scale. Where a page may not have
// workers, they are made here, one at a time.
import {cividis, rgb} from './colour';
import {scaleOf, type ScaleName} from './numbers';
import {kHidden, kOutside, kTile, makeTile, type LongHead} from './tile';
import type {Attention, Trace} from './trace';

declare const TILE_WORKER: string;

// A head whose queries and keys were kept, or undefined.
export function longHead(trace: Trace, layer: Attention, head: number): (LongHead & { error: number }) | undefined {
  const kept = layer.tiles?.find((one) => one.head === layer.heads[head]);
  const q = trace.tensor(kept?.q), k = trace.tensor(kept?.k), lse = trace.tensor(kept?.lse);
  if (!kept || !q || !k || !lse) return undefined;
  const {mask, score} = layer, w = trace.tensor(layer.additive?.w), D = q.shape[1], far = Infinity;
  const high = mask.type === 'causal' ? mask.offset : mask.type === 'window' ? mask.offset + (mask.right ?? far) : far;
  const low = mask.type === 'window' ? mask.offset - (mask.left ?? far) : -far;
  return {
    T: q.shape[0], S: k.shape[0], D, q: q.data as Float32Array, k: k.data as Float32Array, lse: lse.data as Float32Array, scale: score.scale, softcap: score.softcap ?? 0,
    slope: score.slopes?.[head] ?? 0, w: score.fn === 'additive' && w ? (w.data as Float32Array).slice(head * D, (head + 1) * D) : undefined,
    begin: [layer.q.begin, layer.k.begin], low, high, keys: mask.keys ?? far, error: kept.error,
  };
}

const kMost = 300;  // tiles that are kept

export class Tiles {
  private cells = new Map<string, Float32Array | undefined>();
  private pictures = new Map<string, HTMLCanvasElement>();
  private worker: Worker | undefined;

  constructor(readonly head: LongHead, private arrived: () => void) {
    try {
      const url = URL.createObjectURL(new Blob([TILE_WORKER], {type: 'text/javascript'}));
      this.worker = new Worker(url);
      this.worker.onmessage = (event) => { this.put(event.data.id, event.data.cells); };
      this.worker.onerror = () => { this.worker = undefined; this.cells.clear(); this.arrived(); };
      this.worker.postMessage({head});
      URL.revokeObjectURL(url);
    } catch { this.worker = undefined; }
  }
  private put(id: string, cells: Float32Array) { this.cells.set(id, cells); this.arrived(); }
  close() { this.worker?.terminate(); }
  get waiting() { return [...this.cells.values()].some((one) => !one); }

  // Its numbers, or undefined until they are here.
  get(level: number, row: number, column: number): Float32Array | undefined {
    const id = `${level} ${row} ${column}`;
    if (this.cells.has(id)) return this.cells.get(id);
    if (this.cells.size >= kMost) { const oldest = this.cells.keys().next().value!; this.cells.delete(oldest); this.pictures.delete(oldest); }
    this.cells.set(id, undefined);
    if (this.worker) this.worker.postMessage({id, level, row, column});
    else setTimeout(() => this.put(id, makeTile(this.head, level, row, column)));
    return undefined;
  }
  picture(level: number, row: number, column: number, scaleName: ScaleName, ground: string): HTMLCanvasElement | undefined {
    const cells = this.get(level, row, column), id = `${level} ${row} ${column} ${scaleName} ${ground}`;
    if (!cells) return undefined;
    let found = this.pictures.get(id);
    if (!found) {
      if (this.pictures.size >= kMost) this.pictures.delete(this.pictures.keys().next().value!);
      this.pictures.set(id, found = painted(cells, kTile, kTile, scaleName, ground));
    }
    return found;
  }
}

// Cells [rows,columns] as a picture of a pixel each. What is masked is transparent: hatching is drawn under it.
export function painted(cells: ArrayLike<number>, rows: number, columns: number, scaleName: ScaleName, ground: string): HTMLCanvasElement {
  const canvas = document.createElement('canvas'), scale = scaleOf(scaleName), none = rgb(ground);
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext('2d')!, image = context.createImageData(columns, rows);
  const colours = Array.from({length: 256}, (_, i) => rgb(cividis(i / 255)));
  for (let i = 0; i < rows; ++i) {
    let most = 0;
    if (scaleName === 'row') for (let j = 0; j < columns; ++j) most = Math.max(most, cells[i * columns + j]);
    for (let j = 0; j < columns; ++j) {
      const value = cells[i * columns + j], at = 4 * (i * columns + j);
      const [r, g, b] = value <= kOutside ? none : colours[Math.round(255 * scale(Math.max(0, value), most))];
      image.data.set([r, g, b, value === kHidden ? 0 : 255], at);
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}
