// SPDX-License-Identifier: Apache-2.0
import {useMemo} from 'preact/hooks';
import {cividis} from '../colour';
import type {View} from '../context';
import {cellAt, drawMap, layoutOf} from '../draw_map';
import {csvLine, Figure, type Drawing} from '../figure';
import {kLeftOut, kMasked, kNotCaptured, number, scaleOf} from '../numbers';
import {cell, headName, type Panel} from '../panel';
import {caption, Empty, Legend, Note, Removed, said, Word} from '../parts';

export function panelCsv(panel: Panel): string {
  let out = csvLine(['layer', 'head', 'query', 'key', 'query_word', 'key_word', 'weight']);
  panel.queries.forEach((query, i) => panel.keys.forEach((key, j) => {
    const value = cell(panel, i, j);
    const shown = value === kMasked ? 'masked' : value === kNotCaptured ? 'not captured' : value === kLeftOut ? 'left out' : value.toPrecision(7);
    out += csvLine([panel.layer.id, panel.head < 0 ? 'mean' : panel.layer.heads[panel.head], i, j, query.label, key.label, shown]);
  }));
  return out;
}

export function MapView(view: View) {
  const {panel, choices, hover} = view;
  const at = hover ?? choices;
  const make = useMemo(() => (w: number): Drawing => {
    if (!panel) return {width: w, height: 1, draw: () => {}};
    return drawMap(panel, choices.scale, choices.special === 'dim', {query: at.query, key: at.key, pinned: choices.pinned}, w, caption(view, panel));
  }, [panel, choices.scale, choices.special, at.query, at.key, choices.pinned]);
  if (!panel) return <Empty>This model has no attention to map.</Empty>;
  if (!panel.cells || (!panel.layer.weights && panel.queries.length > 100)) return <Pooled {...view} />;
  const point = (x: number, y: number, click: boolean, width: number) => {
    const found = cellAt(layoutOf(panel, width), x, y);
    if (!found) return view.setHover(undefined);
    const key = found.key < 0 ? choices.key : found.key;
    if (click) { view.setHover(undefined); view.set({query: found.query, key, pinned: true}); } else view.setHover({query: found.query, key});
  };
  return (
    <div class="with-note">
      <div>
        <Legend scale={choices.scale} />
        <Figure label={`Weights of ${panel.layer.path}, ${headName(panel.layer, panel.head)}: ${panel.queries.length} rows that look, ${panel.keys.length} columns looked at. The view Table has the numbers.`}
          make={make} name="map" csv={() => panelCsv(panel)} onPoint={point} onLeave={() => view.setHover(undefined)} />
        <p class="readout"><output>{said(panel, at.query, at.key)}</output></p>
        <Removed panel={panel} query={at.query} />
      </div>
      <Note title="One head, all its weights">
        <p>Each <b>row</b> is a word that looks, each <b>column</b> a word that is looked at. Bright is much, dark is nothing. A row shares out
          exactly 1 among the columns that it may see.</p>
        <p>{panel.layer.role === 'cross'
          ? <>Rows are words that the model <b>wrote</b>, columns are those that it <b>read</b>. A row is named by the word that was chosen there.</>
          : panel.layer.role === 'masked'
            ? <>The model writes from left to right, so a row may not see what comes later: those cells are <b>hatched</b>. They are not zero, they do not exist.</>
            : <>The words of one text look at each other. A bright diagonal means: at themselves.</>}</p>
        <p>Now: <Word>{panel.queries[at.query]?.label ?? '?'}</Word>, {panel.queries[at.query]?.detail ?? '?'}.</p>
        {!panel.layer.weights && <p>Of each row the strongest keys alone were captured: what is <b>dotted</b> is not known.</p>}
        {panel.sinks.length > 0 && <p><Word>{panel.sinks[0]}</Word> takes most of all rows: a <b>sink</b>, where heads look when they have nothing to look for.</p>}
      </Note>
    </div>
  );
}

// Long texts: what stands in the place of rows.
function Pooled(view: View) {
  const {panel, choices} = view;
  const layer = panel!.layer, pooled = layer.pooled, head = Math.max(0, panel!.head);
  const map = pooled?.maps.find((one) => one.head === layer.heads[head]);
  const values = view.trace.tensor(choices.pool === 'max' ? map?.max : map?.mean);
  const received = view.trace.tensor(pooled?.received);
  const make = useMemo(() => (width: number): Drawing => {
    if (!values) return {width, height: 1, draw: () => {}};
    const [rows, columns] = values.shape, size = Math.min(6, (width - 20) / columns), scale = scaleOf(choices.scale);
    const S = layer.k.end - layer.k.begin, strip = received ? 60 : 0;
    return {width, height: rows * size + strip + 40, draw: (to, theme) => {
      for (let i = 0; i < rows; ++i) {
        let most = 0;
        for (let j = 0; j < columns; ++j) most = Math.max(most, values.data[i * columns + j]);
        for (let j = 0; j < columns; ++j) to.rect(10 + j * size, 4 + i * size, size + 0.3, size + 0.3, cividis(scale(values.data[i * columns + j], most)));
      }
      to.text(10, rows * size + 16, `${choices.pool} of blocks of ${number(pooled!.queries / rows, 0)} x ${number(pooled!.keys / columns, 0)} tokens; ${caption(view, panel!)}`, {size: 11, fill: theme.soft});
      if (!received) return;
      let most = 0;
      for (let s = 0; s < S; ++s) most = Math.max(most, received.data[head * S + s]);
      const w = (columns * size) / S;
      for (let s = 0; s < S; ++s) {
        const h = most ? (40 * received.data[head * S + s]) / most : 0;
        to.rect(10 + s * w, rows * size + strip + 20 - h, Math.max(0.5, w), h, theme.accent);
      }
      to.text(10, rows * size + strip + 30, `received by each key, of all queries: at most ${number(most, 2)}`, {size: 11, fill: theme.soft});
    }};
  }, [values, received, choices.scale, choices.pool]);
  if (!values) return <Empty>Rows of this layer were not captured, nor a map of them. {view.trace.raw.capture.dropped.join('; ')}</Empty>;
  const csv = () => {
    let out = csvLine(['row_block', 'key_block', choices.pool]);
    for (let i = 0; i < values.data.length; ++i) out += csvLine([Math.floor(i / values.shape[1]), i % values.shape[1], values.data[i].toPrecision(4)]);
    return out;
  };
  return (
    <div class="with-note">
      <div>
        <Legend scale={choices.scale} />
        <p><label>A cell is the <select value={choices.pool} onChange={(e) => view.set({pool: e.currentTarget.value as 'max' | 'mean'})}>
          <option value="max">maximum</option><option value="mean">mean</option></select> of its block</label></p>
        <Figure label={`Pooled weights of ${layer.path}`} make={make} name="pooled" csv={csv} />
      </div>
      <Note title="A long text">
        <p>{layer.q.end - layer.q.begin} words that look times {layer.k.end - layer.k.begin} looked at would not fit a page. So cells are blocks of
          tokens. The <b>maximum</b> shows single strong links; a <b>mean</b> wipes them out, and shows where much of the weight goes.</p>
        <p>The largest cell is <b>{number(Array.from(values.data).reduce((a, b) => Math.max(a, b), 0))}</b>: where all is dark, other <i>Colours</i> show more.</p>
        <p>Whole rows were <b>not captured</b>. The view Text has the strongest keys of each row.</p>
      </Note>
    </div>
  );
}
