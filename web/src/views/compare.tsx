// SPDX-License-Identifier: Apache-2.0
// Two traces side by side, with one scale.
import {useMemo} from 'preact/hooks';
import type {View} from '../context';
import {cellAt, drawMap, layoutOf} from '../draw_map';
import {csvLine, Figure, type Drawing} from '../figure';
import {number} from '../numbers';
import {cell, headName, panelOf, row, type Panel} from '../panel';
import {Bar, Empty, Legend, Note, Word} from '../parts';
import type {Attention, Trace} from '../trace';

// The head and the query, at the same place in both, whose rows differ most: where to begin to look. Encoders, where there are.
export function mostDifferent(a: Trace, b: Trace, merge: boolean): { layer: string; head: number; query: number; key: number } | undefined {
  let best: { layer: string; head: number; query: number; key: number } | undefined, most = 0;
  const layers = a.layers(0).filter((one) => one.weights && one.q.seq === one.k.seq);
  for (const one of layers.some((l) => l.stack === 'encoder') ? layers.filter((l) => l.stack === 'encoder') : layers) {
    const other = b.layers(0).find((layer) => layer.path === one.path);
    if (!other?.weights) continue;
    for (let head = 0; head < one.heads.length; ++head) {
      const left = panelOf(a, one, head, {merge, special: 'show'}), right = panelOf(b, other, head, {merge, special: 'show'});
      if (left.keys.length !== right.keys.length) continue;
      left.queries.forEach((query, i) => {
        if (query.special || i >= right.queries.length || !/\p{L}/u.test(query.label)) return;
        const x = row(left, i), y = row(right, i);
        // Over the words that are in both, as if these were all there are: what moved from one of them to another.
        const shared = left.keys.map((_, j) => j).filter((j) => left.keys[j].label === right.keys[j].label);
        const mass = (values: Float64Array) => shared.reduce((sum, j) => sum + Math.max(0, values[j]), 0);
        const [a0, b0] = [mass(x), mass(y)];
        if (!(a0 > 0) || !(b0 > 0)) return;
        let distance = 0, key = 0, widest = 0;
        for (const j of shared) {
          const moved = Math.abs(x[j] / a0 - y[j] / b0) * Math.min(a0, b0);
          distance += moved;
          if (moved > widest) { widest = moved; key = j; }
        }
        if (distance > most) { most = distance; best = {layer: one.path, head, query: i, key}; }
      });
    }
  }
  return best;
}

export function unlike(left: Panel, right: Panel): string | undefined {
  for (const [name, a, b] of [['row', left.queries, right.queries], ['column', left.keys, right.keys]] as const) {
    if (a.length !== b.length) return `there are ${a.length} ${name}s here and ${b.length} there`;
    const at = a.findIndex((unit, i) => unit.label !== b[i].label);
    if (at >= 0) return `${name} ${at + 1} is '${a[at].label}' here and '${b[at].label}' there`;
  }
  return undefined;
}

export function CompareView(view: View) {
  const {traces, choices, panel} = view;
  const other = traces.length > 1 ? traces[choices.trace === 0 ? 1 : 0] : undefined;
  const found: Attention | undefined = other?.layers(0).find((one) => one.path === panel?.layer.path);
  const right = useMemo(() => (other && found ? panelOf(other, found, panel!.head, choices) : undefined), [other, found, panel?.head, choices.merge, choices.special]);
  const at = view.hover ?? choices;
  const rows = Math.max(panel?.keys.length ?? 0, right?.keys.length ?? 0);
  const draw = (one: Panel | undefined) => (width: number): Drawing =>
    one?.cells ? drawMap(one, choices.scale, choices.special === 'dim', {query: at.query, key: at.key, pinned: choices.pinned}, width, `${one.layer.path}, ${headName(one.layer, one.head)}`)
      : {width, height: 24, draw: (to, theme) => to.text(4, 12, 'not captured', {fill: theme.soft})};
  const makeLeft = useMemo(() => draw(panel), [panel, choices.scale, choices.special, at.query, at.key, choices.pinned]);
  const makeRight = useMemo(() => draw(right), [right, choices.scale, choices.special, at.query, at.key, choices.pinned]);
  if (!other) return <Empty>There is one text in this page. <code>heed explain --out page.html --compare "another sentence"</code> puts a second one beside it, and so does opening its trace (Open, above).</Empty>;
  if (!panel || !right) return <Empty>The other model has no layer '{panel?.layer.path ?? '?'}'.</Empty>;
  const point = (one: Panel) => (x: number, y: number, click: boolean, width: number) => {
    const cellFound = cellAt(layoutOf(one, width), x, y);
    if (!cellFound) return view.setHover(undefined);
    const place = {query: cellFound.query, key: cellFound.key < 0 ? choices.key : cellFound.key};
    if (click) { view.setHover(undefined); view.set({...place, pinned: true}); } else view.setHover(place);
  };
  const labelled = view.trace.raw.label !== undefined || other.raw.label !== undefined;  // in both, so that maps are side by side
  const sameText = view.trace.input().text === other.input().text;
  const reason = unlike(panel, right), list = Array.from({length: rows}, (_, j) => j);
  const value = (one: Panel, j: number) => (j < one.keys.length && at.query < one.queries.length ? cell(one, at.query, j) : NaN);
  const show = (x: number) => (Number.isNaN(x) ? '' : x < 0 ? 'masked' : number(x));
  const csv = () => csvLine(['key', 'here', 'weight_here', 'there', 'weight_there']) + list.map((j) => csvLine([j, panel.keys[j]?.label ?? '', show(value(panel, j)), right.keys[j]?.label ?? '', show(value(right, j))])).join('');
  return (
    <div>
      <Legend scale={choices.scale} />
      <div class="pair">
        {[{one: panel, trace: view.trace, make: makeLeft}, {one: right, trace: other, make: makeRight}].map(({one, trace, make}, i) => (
          <section><h3><bdi>{trace.input().text}</bdi>{labelled && <small class="label"> {trace.raw.label ?? '\u00a0'}</small>}</h3><p class="soft">{trace.results[0]?.text && <>→ <bdi>{trace.results[0].text}</bdi></>}</p>
            <Figure label={`Weights for: ${trace.input().text}`} make={make} name="compare" keep={i === 0} csv={csv} onPoint={point(one)} onLeave={() => view.setHover(undefined)} /></section>
        ))}
      </div>
      <div class="with-note">
        <div class="scroll"><table class="data pairs">
          <caption>What <bdi>{panel.queries[at.query]?.label ?? '?'}</bdi>{right.queries[at.query]?.label !== panel.queries[at.query]?.label && <> / <bdi>{right.queries[at.query]?.label ?? '?'}</bdi></>} looks at</caption>
          <thead><tr><th scope="col">here</th><th scope="col">weight</th><th scope="col">there</th><th scope="col">weight</th></tr></thead>
          <tbody>{list.map((j) => {
            const a = value(panel, j), b = value(right, j), differs = panel.keys[j]?.label !== right.keys[j]?.label;
            return <tr class={j === at.key ? 'chosen' : ''}><td class={differs ? 'differs' : ''}><bdi>{panel.keys[j]?.label ?? ''}</bdi></td><td class="wide">{show(a)}<Bar value={a} /></td>
              <td class={differs ? 'differs' : ''}><bdi>{right.keys[j]?.label ?? ''}</bdi></td><td class="wide">{show(b)}<Bar value={b} /></td></tr>;
          })}</tbody></table></div>
        <Note title={sameText ? 'One sentence, two models' : 'Two sentences, one head'}>
          <p>{sameText ? <>The same words, read by another model, or by one with heads scaled or off. Weights of the same layer and head are beside each other.</> : <>Change one word, and see which looks change with it.</>} Both maps have one scale; the same row and column are marked in both.</p>
          <p><button type="button" onClick={() => { const found = mostDifferent(traces[0], traces[1], choices.merge); if (found) view.set(found); }}>Go where they differ most</button></p>
          {!sameText && <p>Look at the word that was changed, or at one that depends on it, such as a pronoun: what do they look at now?</p>}
          {sameText && <p>It said <Word>{view.trace.results[0].text || '(nothing)'}</Word> here ({number(view.trace.results[0].logprob, 2)}) and <Word>{other.results[0].text || '(nothing)'}</Word> there ({number(other.results[0].logprob, 2)}); the numbers are log-probabilities.</p>}
          <p class="soft">{reason ? <>No map of differences is drawn: {reason}. A difference of unlike words means nothing.</> : <>The words are the same in both, so numbers can be subtracted: the largest difference of this row is {number(Math.max(...list.map((j) => Math.abs(value(panel, j) - value(right, j)))))}.</>}</p>
          <p>Now: <Word>{panel.keys[at.key]?.label ?? '?'}</Word> {show(value(panel, at.key))} here, <Word>{right.keys[at.key]?.label ?? '?'}</Word> {show(value(right, at.key))} there.</p>
        </Note>
      </div>
    </div>
  );
}
