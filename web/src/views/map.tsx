// SPDX-License-Identifier: Apache-2.0
import {useMemo} from 'preact/hooks';
import type {View} from '../context';
import {cellAt, drawMap, layoutOf} from '../draw_map';
import {csvLine, Figure, useWidth, type Drawing} from '../figure';
import {kLeftOut, kMasked, kNotCaptured} from '../numbers';
import {cell, headName, type Panel} from '../panel';
import {LongMap} from './long_map';
import {BadRow, caption, Empty, Legend, Note, Removed, said, Word} from '../parts';

const kLeast = 12, kMargins = 110, kBeside = 318;  // px: of a cell, beside all cells, of the note. What does not fit is looked at through a window
const kHigh = 60;  // words that look

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
  const [box, width] = useWidth();
  const make = useMemo(() => (w: number): Drawing => {
    if (!panel) return {width: w, height: 1, draw: () => {}};
    return drawMap(panel, choices.scale, choices.special === 'dim', {query: at.query, key: at.key, pinned: choices.pinned}, w, caption(view, panel));
  }, [panel, choices.scale, choices.special, at.query, at.key, choices.pinned]);
  if (!panel) return <Empty>This model has no attention to map.</Empty>;
  const fits = panel.cells && panel.queries.length <= kHigh && panel.keys.length * kLeast <= (width > 820 ? width - kBeside : width) - kMargins;
  const point = (x: number, y: number, click: boolean, width: number) => {
    const found = cellAt(layoutOf(panel, width), x, y);
    if (!found) return view.setHover(undefined);
    const key = found.key < 0 ? choices.key : found.key;
    if (click) { view.setHover(undefined); view.set({query: found.query, key, pinned: true}); } else view.setHover({query: found.query, key});
  };
  return (
    <div ref={box}>{width === 0 ? null : !fits ? <LongMap {...view} /> : <div class="with-note">
      <div>
        <Legend scale={choices.scale} />
        <Figure label={`Weights of ${panel.layer.path}, ${headName(panel.layer, panel.head)}: ${panel.queries.length} rows that look, ${panel.keys.length} columns looked at. The view Table has the numbers.`}
          make={make} name="map" csv={() => panelCsv(panel)} onPoint={point} onLeave={() => view.setHover(undefined)} />
        <p class="readout"><output>{said(panel, at.query, at.key)}</output></p>
        <Removed panel={panel} query={at.query} />
        <BadRow panel={panel} query={at.query} />
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
    </div>}</div>
  );
}
