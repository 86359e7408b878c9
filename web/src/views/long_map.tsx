// SPDX-License-Identifier: Apache-2.0
// The map of a long text: one canvas that is dragged and zoomed, a small map of the whole, and a way to jump to a word. From afar
// it shows the pooled map; near, tiles that a worker computes again from the head's queries and keys. Where all weights are there, and
// only do not fit, it shows these.
import {useEffect, useLayoutEffect, useMemo, useRef, useState} from 'preact/hooks';
import type {View} from '../context';
import {csvLine, exportsNow, useThemeCount, useWidth} from '../figure';
import {kLeftOut, kNotCaptured, maskPooled, number, type ScaleName} from '../numbers';
import {caption, Empty, Legend, Note, Word} from '../parts';
import {CanvasSurface, themeOf} from '../surface';
import {kCoarsest, kHidden, kTile, weightAt} from '../tile';
import {longHead, painted, Tiles} from '../tiles';
import {tokenLabel} from '../words';

const kMini = 150, kLabel = 84, kRight = 30, kClosest = 40, kFirst = 16;  // px
export interface Window { t: number; s: number; size: number }  // the token in the upper left corner, and px of a cell

// The level whose cells are about a pixel, or more: 0 is a token a cell.
export const levelOf = (size: number) => Math.max(0, Math.min(kCoarsest + 1, Math.ceil(-Math.log2(size) - 1e-9)));

export function LongMap(view: View) {
  const {panel, choices, trace} = view, layer = panel!.layer, head = Math.max(0, panel!.head), pooled = layer.pooled;
  const [box, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null), mini = useRef<HTMLCanvasElement>(null);
  useThemeCount();
  const [count, setCount] = useState(0);
  const [find, setFind] = useState('');
  const [at, setAt] = useState<{ t: number; s: number } | undefined>(undefined);
  const cells = panel!.cells;  // of words; without them, all is of tokens
  const T = cells ? panel!.queries.length : layer.q.end - layer.q.begin, S = cells ? panel!.keys.length : layer.k.end - layer.k.begin, side = Math.max(200, Math.min(width, 760)), inner = side - kLabel - kRight;
  const whole = inner / Math.max(T, S), place = useRef<Window>({t: 0, s: 0, size: 0});
  const first = cells ? Math.max(whole, kFirst) : whole, height = kLabel + Math.min(inner, T * Math.max(first, place.current.size));
  if (!place.current.size && width) place.current = {t: 0, s: 0, size: first};
  const kept = useMemo(() => (cells ? undefined : longHead(trace, layer, head)), [trace, layer, head, cells]);
  const tiles = useMemo(() => kept && new Tiles(kept, () => setCount((n) => n + 1)), [kept]);
  useEffect(() => () => tiles?.close(), [tiles]);
  const map = pooled?.maps.find((one) => one.head === layer.heads[head]), values = trace.tensor(choices.pool === 'max' ? map?.max : map?.mean);
  const ground = themeOf(document.documentElement).ground;
  const far = useMemo(() => (cells ? painted(cells, T, S, choices.scale, ground) : values && painted(maskPooled(layer, values.data, values.shape[0], values.shape[1]), values.shape[0], values.shape[1], choices.scale, ground)), [cells, values, choices.scale, ground]);
  const farOf: [number, number] = cells ? [T, S] : [pooled?.queries ?? T, pooled?.keys ?? S];
  const query = cells ? choices.query : panel!.queries[choices.query]?.index[0] ?? 0, key = cells ? choices.key : panel!.keys[choices.key]?.index[0] ?? 0;
  const labels = {query: (t: number) => (cells ? panel!.queries[t]?.label ?? '' : tokenLabel(trace.sequence(layer.q.seq), layer.q.begin + t)), key: (s: number) => (cells ? panel!.keys[s]?.label ?? '' : tokenLabel(trace.sequence(layer.k.seq), layer.k.begin + s))};
  const valueAt = (t: number, s: number) => (cells ? cells[t * S + s] : kept ? weightAt(kept, t, s) : kNotCaptured);
  const textOf = (value: number) => (value === kHidden ? 'masked' : value === kNotCaptured ? 'not captured' : value === kLeftOut ? 'left out' : number(value, 4));

  const clamp = (w: Window): Window => {
    const size = Math.max(whole, Math.min(kClosest, w.size)), seen = inner / size;
    return {size, t: Math.max(0, Math.min(Math.max(0, T - seen), w.t)), s: Math.max(0, Math.min(Math.max(0, S - seen), w.s))};
  };
  const unit = kMini / Math.max(T, S), miniWidth = Math.max(24, S * unit), miniHeight = Math.max(24, T * unit);
  const frame = useRef(0);
  const draw = () => {
    frame.current = 0;
    const c = canvas.current, w = place.current;
    if (!c || !width) return;
    paintWindow(c, {side, height, inner, w, far, pooledOf: farOf, tiles, scale: choices.scale, ground, query, key, T, S, labels});
    if (mini.current) paintMini(mini.current, far, [miniWidth, miniHeight], T, S, w, inner);
  };
  const later = () => { frame.current ||= requestAnimationFrame(draw); };
  const go = (w: Window) => { place.current = clamp(w); later(); };
  useLayoutEffect(draw);
  useEffect(() => { exportsNow.current = {
    name: 'map', png: () => new Promise((done) => canvas.current!.toBlob(done)),
    csv: () => csvLine(['query', 'key', 'query_word', 'key_word', 'weight']) + visible().map((row) => csvLine(row)).join(''),
  }; });
  // What is on the screen, of tokens that are cells.
  const visible = () => {
    const w = place.current, n = Math.min(kTile, Math.ceil(inner / w.size)), out: (string | number)[][] = [];
    for (let t = Math.floor(w.t); t < Math.min(T, w.t + n); ++t)
      for (let s = Math.floor(w.s); s < Math.min(S, w.s + n); ++s) out.push([t, s, labels.query(t), labels.key(s), textOf(valueAt(t, s))]);
    return out;
  };
  // What was chosen elsewhere, by keys or by jumping, comes into sight.
  const last = useRef([query, key]);
  useEffect(() => {
    if (last.current[0] === query && last.current[1] === key) return;
    last.current = [query, key];
    const w = place.current, seen = inner / w.size, out = (x: number, from: number) => x < from || x > from + seen - 1;
    if (out(query, w.t) || out(key, w.s)) go({...w, t: query - seen / 2, s: key - seen / 2});
  }, [query, key]);

  const unitOf = useMemo(() => {
    const make = (units: { index: number[] }[], n: number) => { const of = new Int32Array(n); units.forEach((unit, i) => unit.index.forEach((x) => { of[x] = i; })); return of; };
    const own = (n: number) => Int32Array.from({length: n}, (_, i) => i);
    return cells ? {query: own(T), key: own(S)} : {query: make(panel!.queries, T), key: make(panel!.keys, S)};
  }, [panel]);
  const cellOf = (event: { clientX: number; clientY: number }) => {
    const rect = canvas.current!.getBoundingClientRect(), w = place.current;
    const t = Math.floor(w.t + (event.clientY - rect.top - kLabel) / w.size), s = Math.floor(w.s + (event.clientX - rect.left - kLabel) / w.size);
    return t >= 0 && t < T && s >= 0 && s < S && event.clientX - rect.left >= kLabel && event.clientY - rect.top >= kLabel ? {t, s} : undefined;
  };
  const zoom = (by: number, event?: { clientX: number; clientY: number }) => {
    const w = place.current, rect = canvas.current!.getBoundingClientRect();
    const x = event ? event.clientX - rect.left - kLabel : inner / 2, y = event ? event.clientY - rect.top - kLabel : inner / 2;
    const size = Math.max(whole, Math.min(kClosest, w.size * by));
    go({size, t: w.t + y / w.size - y / size, s: w.s + x / w.size - x / size});
  };
  useEffect(() => {  // wheel has to be stopped, which a passive listener cannot
    const c = canvas.current, wheel = (event: WheelEvent) => { event.preventDefault(); zoom(Math.exp(-event.deltaY / 300), event); };
    c?.addEventListener('wheel', wheel, {passive: false});
    return () => c?.removeEventListener('wheel', wheel);
  });
  const pointers = useRef(new Map<number, { x: number; y: number }>()), moved = useRef(0);
  const down = (event: PointerEvent) => { canvas.current!.setPointerCapture(event.pointerId); pointers.current.set(event.pointerId, {x: event.clientX, y: event.clientY}); moved.current = 0; };
  const up = (event: PointerEvent) => {
    const click = pointers.current.size === 1 && moved.current < 5 ? cellOf(event) : undefined;
    pointers.current.delete(event.pointerId);
    if (click && event.type === 'pointerup') { last.current = [click.t, click.s]; view.set({query: unitOf.query[click.t], key: unitOf.key[click.s], pinned: true}); }
  };
  const drag = (event: PointerEvent) => {
    const all = pointers.current, before = all.get(event.pointerId);
    if (!before) return setAt(cellOf(event));
    const w = place.current, dx = event.clientX - before.x, dy = event.clientY - before.y, other = [...all].find(([id]) => id !== event.pointerId)?.[1];
    all.set(event.pointerId, {x: event.clientX, y: event.clientY});
    moved.current += Math.abs(dx) + Math.abs(dy);
    if (!other) return go({...w, t: w.t - dy / w.size, s: w.s - dx / w.size});
    const distance = (p: { x: number; y: number }) => Math.hypot(p.x - other.x, p.y - other.y);
    zoom(distance({x: event.clientX, y: event.clientY}) / Math.max(1, distance(before)), {clientX: (event.clientX + other.x) / 2, clientY: (event.clientY + other.y) / 2});
  };
  const jump = (event: Event) => {
    event.preventDefault();
    const wanted = find.trim().toLowerCase(), n = panel!.queries.length, from = choices.query;
    const found = wanted && Array.from({length: n}, (_, i) => (from + 1 + i) % n).find((i) => panel!.queries[i].label.toLowerCase().includes(wanted));
    if (typeof found !== 'number') return setFind(wanted && !find.endsWith(' (not there)') ? `${find} (not there)` : find);
    const firstOf = (unit: { index: number[] }, i: number) => (cells ? i : unit.index[0]), t = firstOf(panel!.queries[found], found);
    const s = layer.q.seq === layer.k.seq ? unitOf.key[Math.min(S - 1, t)] : choices.key;
    const size = Math.max(place.current.size, 14), seen = inner / size;
    last.current = [t, firstOf(panel!.keys[s], s)];
    go({size, t: t - seen / 2, s: last.current[1] - seen / 2});
    return view.set({query: found, key: s, pinned: true});
  };
  const miniGo = (event: MouseEvent) => {
    const rect = mini.current!.getBoundingClientRect(), w = place.current, seen = inner / w.size;
    go({...w, t: ((event.clientY - rect.top) / rect.height) * T - seen / 2, s: ((event.clientX - rect.left) / rect.width) * S - seen / 2});
  };
  if (!values && !kept && !cells) return <Empty>Rows of this layer were not captured, nor a map of them. {trace.raw.capture.dropped.join('; ')}</Empty>;
  const read = at ?? {t: query, s: key};
  return (
    <div class="with-note">
      <div>
        <Legend scale={choices.scale} />
        <div class="long-tools">
          <button type="button" onClick={() => zoom(2)} aria-label="Zoom in">+</button><button type="button" onClick={() => zoom(0.5)} aria-label="Zoom out">−</button>
          <button type="button" onClick={() => go({t: 0, s: 0, size: whole})}>Whole</button>
          <form onSubmit={jump}><input type="search" placeholder="jump to a word" aria-label="Jump to a word" value={find} onInput={(e) => setFind(e.currentTarget.value)} /><button>Next</button></form>
          {values && !cells && <label>Far away, a cell is the <select value={choices.pool} onChange={(e) => view.set({pool: e.currentTarget.value as 'max' | 'mean'})}><option value="max">maximum</option><option value="mean">mean</option></select></label>}
        </div>
        <div class="figure" ref={box}>
          <canvas ref={canvas} class="long" role="img" style={{width: `${side}px`, height: `${height}px`}} data-size={place.current.size} data-tiles={count}
            aria-label={`Weights of ${caption(view, panel!)}: ${T} ${cells ? 'words' : 'tokens'} that look, ${S} looked at. Drag to move, turn the wheel to zoom.`}
            onPointerDown={down} onPointerMove={drag} onPointerUp={up} onPointerCancel={up} onPointerLeave={() => setAt(undefined)} />
        </div>
        <p class="readout"><output><bdi>{labels.query(read.t)}</bdi> ({(cells ? 0 : layer.q.begin) + read.t}) to <bdi>{labels.key(read.s)}</bdi> ({(cells ? 0 : layer.k.begin) + read.s}){' '}
          {textOf(valueAt(read.t, read.s))}</output></p>
      </div>
      <div>
        <canvas ref={mini} class="mini" role="img" aria-label="The whole map; click to go there" style={{width: `${miniWidth}px`, height: `${miniHeight}px`}} onClick={miniGo} />
        <Note title="A long text">
          <p><b>Drag</b> to move, <b>wheel</b> or pinch to zoom, click a cell to hold it. The small map shows where you are.</p>
          {pooled && values && !cells && <p>From afar a cell is a block of {number(pooled.queries / values.shape[0], 0)} × {number(pooled.keys / values.shape[1], 0)} tokens. The <b>maximum</b> shows single strong links; a <b>mean</b> wipes them out, and shows where much of the weight goes.</p>}
          {cells ? <p>Rows look, columns are looked at; bright is much, and what is hatched may not be seen. A row shares out exactly 1.</p> : kept ? <p>Of this head queries and keys were kept: near by, weights are <b>computed again</b> from them on this page, to within {Number(kept.error.toPrecision(2))} of the exact ones.</p>
            : <p>Whole rows of this head were <b>not captured</b>; blocks are all that is known. {layer.tiles?.length ? <>Heads that can be zoomed: {layer.tiles.map((one) => one.head).join(', ')}.</> : <code>--trace-head {layer.path}.{layer.heads[head]}</code>}</p>}
          {values && !cells && <p>The largest block has <b>{number(Array.from(values.data).reduce((a, b) => Math.max(a, b), 0))}</b>: where all is dark, other <i>Colours</i> show more.</p>}
          <p>Now: <Word>{labels.query(query)}</Word>.</p>
        </Note>
      </div>
    </div>
  );
}

interface Scene {
  side: number; height: number; inner: number; w: Window; far: HTMLCanvasElement | undefined; pooledOf: [number, number]; tiles: Tiles | undefined; scale: ScaleName; ground: string;
  query: number; key: number; T: number; S: number; labels: { query(t: number): string; key(s: number): string };
}

function sized(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  const dots = Math.min(2, devicePixelRatio || 1), context = canvas.getContext('2d')!;
  if (canvas.width !== Math.round(width * dots) || canvas.height !== Math.round(height * dots)) { canvas.width = Math.round(width * dots); canvas.height = Math.round(height * dots); }
  context.setTransform(dots, 0, 0, dots, 0, 0);
  context.imageSmoothingEnabled = false;
  return context;
}

function paintWindow(canvas: HTMLCanvasElement, scene: Scene): void {
  const {side, height, inner, w, far, tiles, T, S} = scene, c = sized(canvas, side, height), theme = themeOf(canvas), {size} = w;
  canvas.dataset.size = String(size);
  c.fillStyle = theme.ground;
  c.fillRect(0, 0, side, height);
  c.save();
  c.beginPath(); c.rect(kLabel, kLabel, inner, inner); c.clip();
  const x = (s: number) => kLabel + (s - w.s) * size, y = (t: number) => kLabel + (t - w.t) * size;
  const hatch = new CanvasSurface(c, theme);
  hatch.hatch(Math.max(kLabel, x(0)), Math.max(kLabel, y(0)), Math.min(inner, S * size), Math.min(inner, T * size), 'masked');
  if (far) c.drawImage(far, x(0), y(0), scene.pooledOf[1] * size, scene.pooledOf[0] * size);
  const level = levelOf(size), block = kTile * 2 ** level;
  if (tiles && level <= kCoarsest)
    for (let row = Math.floor(w.t / block); row * block < Math.min(T, w.t + inner / size); ++row)
      for (let column = Math.floor(w.s / block); column * block < Math.min(S, w.s + inner / size); ++column) {
        const picture = tiles.picture(level, row, column, scene.scale, scene.ground);
        if (!picture) continue;
        hatch.hatch(x(column * block), y(row * block), Math.min(block, S - column * block) * size, Math.min(block, T - row * block) * size, 'masked');  // over the map from afar
        c.drawImage(picture, x(column * block), y(row * block), block * size, block * size);
      }
  c.strokeStyle = theme.accent;
  c.lineWidth = 1.5;
  c.strokeRect(kLabel - 2, y(scene.query), inner + 4, Math.max(2, size));
  c.strokeRect(x(scene.key), y(scene.query), Math.max(3, size), Math.max(3, size));
  c.restore();
  // Labels where they have room; numbers of tokens from afar.
  const every = Math.max(1, Math.ceil(13 / size)), step = every === 1 ? 1 : 10 ** Math.ceil(Math.log10(every * 4));
  c.font = '12px system-ui, sans-serif';
  c.textBaseline = 'middle';
  const text = (label: string, n: number) => (step === 1 ? (label.length > 11 ? label.slice(0, 10) + '…' : label) : String(n));
  for (let t = Math.ceil(w.t / step) * step; t < Math.min(T, w.t + inner / size); t += step) {
    c.fillStyle = t === scene.query ? theme.accent : theme.soft;
    c.textAlign = 'end';
    c.fillText(text(scene.labels.query(t), t), kLabel - 6, y(t + (step === 1 ? 0.5 : 0)));
  }
  for (let s = Math.ceil(w.s / step) * step; s < Math.min(S, w.s + inner / size); s += step) {
    c.save();
    c.fillStyle = s === scene.key ? theme.accent : theme.soft;
    c.translate(x(s + (step === 1 ? 0.5 : 0)), kLabel - 6);
    c.rotate(-Math.PI / 3);
    c.textAlign = 'start';
    c.fillText(text(scene.labels.key(s), s), 0, 0);
    c.restore();
  }
}

function paintMini(canvas: HTMLCanvasElement, far: HTMLCanvasElement | undefined, [width, height]: [number, number], T: number, S: number, w: Window, inner: number): void {
  const c = sized(canvas, width, height), theme = themeOf(canvas);
  c.fillStyle = theme.line;
  c.fillRect(0, 0, width, height);
  if (far) c.drawImage(far, 0, 0, width, height);
  const wide = Math.max(5, Math.min(width - 2, (inner / w.size / S) * width)), high = Math.max(5, Math.min(height - 2, (inner / w.size / T) * height));
  c.strokeStyle = theme.accent;
  c.lineWidth = 2;
  c.strokeRect(Math.max(1, Math.min(width - wide - 1, (w.s / S) * width)), Math.max(1, Math.min(height - high - 1, (w.t / T) * height)), wide, high);
}
