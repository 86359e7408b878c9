// SPDX-License-Identifier: Apache-2.0
// All heads at once: thumbnails on one canvas, sorted as wished.
import {useMemo} from 'preact/hooks';
import {cividis} from '../colour';
import type {View} from '../context';
import {csvLine, Figure, type Drawing} from '../figure';
import {headStats, keysOf, kMasked, kNotCaptured, maskPooled, maskRows, number, queriesOf, rowsOf, scaleOf, type HeadStats} from '../numbers';
import {Empty, Legend, Note} from '../parts';
import type {Attention, Trace} from '../trace';

interface Thumb { layer: Attention; head: number; stats: HeadStats; importance: number | undefined }
const kSorts: Record<string, string> = {layer: 'as in the model', importance: 'importance, largest first', entropy: 'entropy, sharpest first', diagonal: 'diagonal, strongest first', sink: 'sink, strongest first'};
const kGap = 12, kCaption = 34;

function placesOf(thumbs: Thumb[], byLayer: boolean, width: number) {
  const most = byLayer ? Math.max(1, ...thumbs.map((one) => one.layer.heads.length)) : 8;
  const size = Math.max(56, Math.min(150, Math.floor((width - kGap) / Math.min(most, Math.max(2, Math.floor(width / 86)))) - kGap));
  const columns = Math.max(1, Math.min(most, Math.floor((width + kGap) / (size + kGap))));
  const places: { x: number; y: number }[] = [], titles: { text: string; y: number }[] = [];
  let x = 0, y = byLayer ? 0 : 4, last: Attention | undefined;
  for (const one of thumbs) {
    if (byLayer && one.layer !== last) {
      if (last) y += x ? size + kCaption : 0;
      titles.push({text: one.layer.path, y: y + 12});
      y += 26; x = 0; last = one.layer;
    }
    if (x >= columns) { x = 0; y += size + kCaption; }
    places.push({x: x * (size + kGap) + 2, y});
    ++x;
  }
  return {size, places, titles, height: y + size + kCaption + 4};
}

// What the head does to the words that were chosen, by the gradients of its gate: the mean of their sizes.
export function importanceOf(trace: Trace, layer: Attention, head: number): number | undefined {
  const sizes = (trace.raw.effects ?? []).flatMap((effect) => (effect.heads ?? []).filter((one) => one.path === layer.path && one.head === layer.heads[head]).map((one) => Math.abs(one.gradient)));
  return sizes.length ? sizes.reduce((a, b) => a + b, 0) / sizes.length : undefined;
}

export function HeadsView(view: View) {
  const {choices, layers, trace} = view;
  const byLayer = choices.sort === 'layer';
  const thumbs = useMemo(() => {
    const all: Thumb[] = layers.flatMap((layer) => layer.heads.map((_, head) => ({layer, head, stats: headStats(trace, layer, head), importance: importanceOf(trace, layer, head)})));
    const by = (f: (s: HeadStats) => number | undefined, up: boolean) =>
      all.sort((a, b) => ((f(a.stats) ?? (up ? Infinity : -Infinity)) - (f(b.stats) ?? (up ? Infinity : -Infinity))) * (up ? 1 : -1) || 0);
    if (choices.sort === 'importance') all.sort((a, b) => (b.importance ?? -1) - (a.importance ?? -1));
    if (choices.sort === 'entropy') by((s) => s.entropy, true);
    if (choices.sort === 'diagonal') by((s) => s.diagonal, false);
    if (choices.sort === 'sink') by((s) => s.sink, false);
    return all;
  }, [trace, layers, choices.sort]);
  const make = useMemo(() => (width: number): Drawing => {
    const {size, places, titles, height} = placesOf(thumbs, byLayer, width), scale = scaleOf(choices.scale);
    return {width, height, draw: (to, theme) => {
      for (const title of titles) to.text(2, title.y, title.text, {size: 13, bold: true});
      thumbs.forEach((one, n) => {
        const {x, y} = places[n], {layer, head} = one;
        drawThumb(one, (i, j, rows, columns, value, most) => {
          const w = size / columns, h = size / rows;
          if (value === kMasked || value === kNotCaptured) to.rect(x + j * w, y + i * h, w + 0.4, h + 0.4, theme.ground);
          else to.rect(x + j * w, y + i * h, w + 0.4, h + 0.4, cividis(scale(value, most)));
        }, (kind) => to.hatch(x, y, size, size, kind), view);
        const chosen = layer === view.layer && head === choices.head;
        to.frame(x - 1, y - 1, size + 2, size + 2, chosen ? theme.accent : theme.line, chosen ? 3 : 1);
        to.text(x, y + size + 11, byLayer ? `head ${layer.heads[head]}` : `${layer.path} · ${layer.heads[head]}`, {size: 11, bold: chosen, fill: chosen ? theme.accent : theme.ink});
        const {entropy, diagonal, sink} = one.stats;
        const show = (v: number | undefined) => (v === undefined ? 'not captured' : number(v, 2));
        const text = choices.sort === 'importance' ? `importance ${show(one.importance)}` : choices.sort === 'diagonal' ? `diagonal ${show(diagonal)}` : choices.sort === 'sink' ? `sink ${show(sink)}` : `entropy ${show(entropy)}`;
        to.text(x, y + size + 24, text, {size: 10, fill: theme.soft});
      });
    }};
  }, [thumbs, byLayer, choices.scale, choices.head, view.layer]);
  if (!thumbs.length) return <Empty>This model has no attention heads.</Empty>;
  const point = (px: number, py: number, click: boolean, width: number) => {
    if (!click) return;
    const {size, places} = placesOf(thumbs, byLayer, width);
    const n = places.findIndex(({x, y}) => px >= x && px <= x + size && py >= y && py <= y + size + kCaption - 6);
    if (n >= 0) view.set({view: 'map', layer: thumbs[n].layer.path, head: thumbs[n].head});
  };
  const csv = () => csvLine(['layer', 'head', 'entropy', 'diagonal', 'sink', 'importance']) +
    thumbs.map(({layer, head, stats, importance}) => csvLine([layer.id, layer.heads[head], ...[stats.entropy, stats.diagonal, stats.sink, importance].map((v) => v?.toPrecision(6) ?? 'not captured')])).join('');
  return (
    <div class="with-note">
      <div>
        <Legend scale={choices.scale} kinds={false} />
        <p><label>Sorted by <select value={choices.sort} onChange={(e) => view.set({sort: e.currentTarget.value})}>
          {Object.entries(kSorts).map(([name, text]) => <option value={name}>{text}</option>)}</select></label> <span class="soft">Click one to open its map.</span></p>
        <Figure label={`${thumbs.length} heads as small maps. The table of the saved CSV has their numbers.`} make={make} name="heads" csv={csv} onPoint={point} />
      </div>
      <Note title={`${thumbs.length} heads, ${thumbs.length} ways to look`}>
        <p>Each square is one head's map: rows look, columns are looked at. All share one colour scale.</p>
        <p><b>Entropy</b> is 0 for a head that looks at one word, and 1 for one that looks at all alike. <b>Diagonal</b> is the weight at the word's own place.
          A <b>sink</b> is the word that gets most of all rows, often the first or the last one: a place to look at when there is nothing to find.{' '}
          <b>Importance</b> is what the head does to the words that were chosen, by its gradients: the view Effect has it for each.</p>
      </Note>
    </div>
  );
}

type Cell = (i: number, j: number, rows: number, columns: number, value: number, most: number) => void;
const kMostCells = 48;

// Large maps are pooled to the maximum of blocks: a mean would wipe single links out.
function drawThumb({layer, head}: Thumb, put: Cell, blank: (kind: 'masked' | 'missing') => void, view: View): void {
  const full = layer.weights ? rowsOf(view.trace, layer, head) : undefined;
  let T = queriesOf(layer), S = keysOf(layer), at: (i: number, j: number) => number;
  if (full) {
    const masked = maskRows(layer, full), K = S;
    at = (i, j) => masked[i * K + j];
  } else {
    const map = view.trace.tensor(layer.pooled?.maps.find((one) => one.head === layer.heads[head])?.max);
    if (!map) return blank('missing');
    [T, S] = map.shape;
    const seen = maskPooled(layer, map.data, T, S), K = S;
    at = (i, j) => seen[i * K + j];
  }
  blank('masked');
  const rows = Math.min(T, kMostCells), columns = Math.min(S, kMostCells);
  const values = new Float64Array(rows * columns).fill(kMasked);
  for (let i = 0; i < T; ++i) for (let j = 0; j < S; ++j) {
    const to = Math.floor((i * rows) / T) * columns + Math.floor((j * columns) / S);
    values[to] = Math.max(values[to], at(i, j));
  }
  for (let i = 0; i < rows; ++i) {
    const line = values.subarray(i * columns, (i + 1) * columns), most = Math.max(...line);
    line.forEach((value, j) => { if (value !== kMasked) put(i, j, rows, columns, value, most); });
  }
}
