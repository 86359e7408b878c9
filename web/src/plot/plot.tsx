// SPDX-License-Identifier: Apache-2.0
// One plot: legend whose names switch series off, picture, what is pointed at in words, saving, the table of its numbers.
import {useMemo, useRef, useState} from 'preact/hooks';
import {csvLine, download, Figure, useThemeCount, type Exports} from '../figure';
import {valueText} from '../scale';
import {themeOf, type Theme} from '../surface';
import {drawingOf, lookOf, remark} from './draw';
import {placesOf, type Plot, type Point} from './report';
import {savedOf} from './saved';

const kMostRows = 400;
const withRange = (point: Point | undefined) =>
  point === undefined ? '' : valueText(point[1]) + (point[2] === undefined ? '' : ` (${valueText(point[2])} to ${valueText(point[3])})`);

export function csvOf(plot: Plot): string {
  const x = plot.categories?.length ? 'category' : plot.x.label || 'x';
  let text = csvLine(['series', x, plot.y.label || 'y', 'low', 'high']);
  for (const one of plot.series)
    for (const [at, y, low, high] of one.points) text += csvLine([one.name, plot.categories?.[at] ?? at, y ?? '', low ?? '', high ?? '']);
  return text;
}

export function PlotView({plot, number}: { plot: Plot; number: number }) {
  const [hidden, setHidden] = useState(new Set<number>());
  const [at, setAt] = useState<number | undefined>(undefined);
  const [open, setOpen] = useState(false);
  const saved = useRef<Exports>({name: ''});
  const places = useMemo(() => (plot.categories?.length ? plot.categories.map((_, i) => i) : placesOf(plot.series)), [plot]);
  const shown = {plot, hidden, at};
  const nameOf = (x: number) => plot.categories?.[x] ?? `${plot.x.label} ${valueText(x)}`;
  const make = useMemo(() => (width: number) => drawingOf(shown, width), [plot, hidden, at]);
  const makeSaved = useMemo(() => (width: number) => savedOf(shown, width), [plot, hidden]);
  const toggle = (i: number) => setHidden((old) => { const now = new Set(old); if (!now.delete(i)) now.add(i); return now; });
  const point = (x: number, y: number, _click: boolean, width: number) => {
    const {layout} = drawingOf(shown, width);
    if (layout.rowOf) return setAt(places[Math.max(0, Math.min(places.length - 1, layout.rowOf(y)))]);
    let best: number | undefined, nearest = Infinity;
    for (const place of places) if (Math.abs(layout.at(place) - x) < nearest) { nearest = Math.abs(layout.at(place) - x); best = place; }
    setAt(best);
  };
  const move = (event: KeyboardEvent) => {
    const by = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key], now = at === undefined ? -1 : places.indexOf(at);
    const to = event.key === 'Home' ? 0 : event.key === 'End' ? places.length - 1 : by === undefined ? undefined : Math.max(0, Math.min(places.length - 1, now + by));
    if (to === undefined || !places.length) return;
    event.preventDefault();
    setAt(places[to]);
  };
  const values = at === undefined ? [] : plot.series.flatMap((one, i) => {
    const found = one.points.find(([x]) => x === at);
    return hidden.has(i) || !found ? [] : [`${one.name} ${withRange(found)}`];
  });
  const file = plot.title.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '') || `plot-${number}`;
  return (
    <section class="plot">
      <h2>{plot.title}</h2>
      {plot.series.length > 1 && <Legend plot={plot} hidden={hidden} toggle={toggle} />}
      <div tabIndex={0} role="group" aria-label={`${plot.title}: arrows go through the values`} onKeyDown={move}>
        <Figure label={`${plot.title}: ${plot.y.label} of ${plot.series.map((one) => one.name).join(', ')}`} make={make} makeSaved={makeSaved} name={file} saved={saved} onPoint={point} onLeave={() => setAt(undefined)} />
      </div>
      <p class="readout" aria-live="polite">{at === undefined ? <span class="soft">{plot.note}</span> : <><b>{nameOf(at)}</b>: {values.join(' · ') || 'nothing was measured'}</>}</p>
      {remark(shown) && <p class="warn">{remark(shown)}</p>}
      <div class="foot">
      <details onToggle={(e) => setOpen((e.currentTarget as HTMLDetailsElement).open)}>
        <summary>The numbers</summary>
        {open && <div class="scroll" tabIndex={0}><table>
          <thead><tr><th>{plot.categories?.length ? '' : plot.x.label}</th>{plot.series.map((one) => <th>{one.name}</th>)}</tr></thead>
          <tbody>{places.slice(0, kMostRows).map((x) => <tr><th scope="row">{plot.categories?.[x] ?? valueText(x)}</th>{plot.series.map((one) => <td>{withRange(one.points.find((p) => p[0] === x))}</td>)}</tr>)}</tbody>
        </table>{places.length > kMostRows && <p class="soft">{places.length - kMostRows} more rows are in the CSV.</p>}</div>}
      </details>
      <div class="save">
        <button type="button" onClick={() => download(`${file}.svg`, saved.current.svg!(), 'image/svg+xml')}>SVG</button>
        <button type="button" onClick={async () => { const blob = await saved.current.png!(); if (blob) download(`${file}.png`, blob, 'image/png'); }}>PNG</button>
        <button type="button" onClick={() => download(`${file}.csv`, csvOf(plot), 'text/csv')}>CSV</button>
      </div>
      </div>
    </section>
  );
}

function Legend({plot, hidden, toggle}: { plot: Plot; hidden: Set<number>; toggle: (i: number) => void }) {
  useThemeCount();
  const theme: Theme = themeOf(document.documentElement);
  return (
    <div class="key">{plot.series.map((one, i) => {
      const {colour, dash} = lookOf(theme, i);
      return <button type="button" aria-pressed={!hidden.has(i)} title="show or hide" onClick={() => toggle(i)}>
        <svg width="22" height="10" aria-hidden="true"><line x1="0" y1="5" x2="22" y2="5" stroke={colour} stroke-width={plot.marks === 'lines' ? 3 : 9} stroke-dasharray={dash.join(' ')} opacity={hidden.has(i) ? 0.3 : 1} /></svg>{one.name}</button>;
    })}</div>
  );
}
