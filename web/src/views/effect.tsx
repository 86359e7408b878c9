// SPDX-License-Identifier: Apache-2.0
// Why it said a word: what each word that it read is worth, measured, beside the weights and what gradients predict; and what each
// head is worth.
import {useMemo, useState} from 'preact/hooks';
import type {View} from '../context';
import {agreement, effectRows, kMethods, layersOf, methodsOf, mostMeasured, strongestRows, wayOf, type EffectRow, type Method, type Way} from '../effect';
import {csvLine, Figure, type Drawing} from '../figure';
import {kMasked, number} from '../numbers';
import {panelOf} from '../panel';
import {Empty, Note, Word} from '../parts';
import type {Surface, Theme} from '../surface';
import type {Attention, Effect} from '../trace';

// 'a' of 'log p(a)'; 'a, not b' of 'log p(a) - log p(b)'.
const nameOf = ({name}: Effect) => name.replace(/^log p\((.*)\) - log p\((.*)\)$/, '$1, not $2').replace(/^log p\((.*)\)$/, '$1');
const percent = (logprob: number) => `${number(100 * Math.exp(logprob), Math.exp(logprob) < 0.01 ? 2 : 1)}%`;
const signed = (x: number) => (x >= 0.005 ? '+' : x <= -0.005 ? '−' : '') + Math.abs(x).toFixed(2);
const kRow = 26, kTop = 42, kFew = 12, kMostRows = 20;

interface Column { title: string; sub: string; of: (row: EffectRow) => number | undefined; signed: boolean; text: (x: number) => string }

function columnsOf(method: Method | undefined, name: string): Column[] {
  const all: Column[] = [{title: 'looked at', sub: name, of: (row) => (row.weight >= 0 ? row.weight : undefined), signed: false, text: (x) => x.toFixed(2)}];
  if (method) all.push({title: kMethods[method].short, sub: kMethods[method].name, of: (row) => row.method, signed: kMethods[method].signed, text: kMethods[method].signed ? signed : (x) => x.toFixed(2)});
  all.push({title: 'measured', sub: 'with it − without it', of: (row) => row.measured, signed: true, text: signed});
  return all;
}

export function drawEffects(rows: EffectRow[], columns: Column[], width: number, chosen: number): Drawing {
  const longest = Math.max(4, ...rows.map((row) => Math.min(16, row.unit.label.length)));
  const left = Math.min(longest * 8 + 16, width * 0.22), gap = width < 500 ? 6 : 22, w = (width - left - gap * columns.length) / columns.length;
  const digits = w > 110 ? 50 : 44;
  const letters = Math.floor((left - 8) / 8.8);
  const draw = (to: Surface, theme: Theme) => {
    if (chosen >= 0) to.rect(0, kTop + chosen * kRow, width, kRow, theme.line);
    rows.forEach((row, i) => {
      const label = row.unit.label.length > letters ? row.unit.label.slice(0, letters - 1) + '…' : row.unit.label;
      to.text(left - 8, kTop + (i + 0.5) * kRow, label, {align: 'end', size: 13, fill: row.unit.special ? theme.soft : theme.ink, bold: i === chosen});
    });
    columns.forEach((column, c) => {
      const x0 = left + gap * (c + 0.5) + c * w, values = rows.map(column.of), bars = w - digits;
      const known = values.filter((x): x is number => x !== undefined), low = Math.min(0, ...known), high = Math.max(0, ...known);
      const most = column.signed ? Math.max(1e-9, high - low) : c === 0 ? 1 : Math.max(1e-9, high), zero = x0 + (column.signed ? (-low / most) * bars : 0);
      to.text(x0, 10, column.title, {bold: true, size: 13});
      if (w > 130) to.text(x0, 27, column.sub, {size: 11, fill: theme.soft});
      rows.forEach((row, i) => {
        const y = kTop + i * kRow + 4, x = values[i], middle = y + (kRow - 8) / 2;
        if (x === undefined) {
          const masked = c === 0 && row.weight === kMasked;
          to.hatch(x0, y, Math.min(60, bars), kRow - 8, masked ? 'masked' : 'missing');
          return;
        }
        const size = (Math.abs(x) / most) * bars;
        to.rect(x < 0 ? zero - size : zero, y, Math.max(1, size), kRow - 8, column.signed ? (x < 0 ? theme.series[3] : theme.accent) : theme.series[0]);
        to.text(x0 + w, middle, column.text(x), {align: 'end', size: 12, fill: theme.ink});
      });
      to.rect(Math.round(zero), kTop, 1, rows.length * kRow, theme.soft);
    });
  };
  return {width, height: kTop + rows.length * kRow + 6, draw};
}

export function EffectView(view: View) {
  const {trace, choices} = view, effects = (trace.raw.effects ?? []).filter((one) => one.seq === trace.results[0].seq);
  const at = effects[choices.why] ? choices.why : effects.length ? mostMeasured(effects) : 0, effect: Effect | undefined = effects[at];
  const layers = effect ? layersOf(effect, view.layers) : [], cross = layers.filter((one) => one.role === 'cross');
  const layer = layers.find((one) => one === view.layer) ?? cross[cross.length - 1] ?? layers[layers.length - 1];
  const head = layer === view.layer ? choices.head : -1, methods = effect ? methodsOf(effect, layer) : [];
  const method = methods.includes(choices.method) ? choices.method : methods[0];
  const [chosen, setChosen] = useState(-1), [whole, setWhole] = useState(false);
  const every = useMemo(() => (effect && layer ? effectRows(trace, effect, layer, head, method) : []), [trace, effect, layer, head, method]);
  const rows = useMemo(() => (whole ? every : strongestRows(every, kMostRows)), [every, whole]);
  const way = useMemo(() => (effect && layer ? wayOf(trace, effect, layer, every, view.layers) : undefined), [trace, effect, layer, every]);
  const name = layer ? (head < 0 ? `mean of ${layer.heads.length} heads` : `head ${layer.heads[head]}`) : '';
  const columns = useMemo(() => columnsOf(method, name), [method, name]);
  const make = useMemo(() => (width: number) => drawEffects(rows, columns, width, chosen), [rows, columns, chosen]);
  if (!effect) return <Empty>Not captured: this trace does not say what words and heads are worth.{view.choices.hyp > 0 ? ' It does so of the best hypothesis.' : ' The pages of heed explain --out do, unless the text is long.'}</Empty>;
  const csv = () => csvLine(['word', 'weight', ...(method ? [method] : []), 'measured']) + every.map((row) => csvLine([row.unit.label, ...columns.map((one) => one.of(row) ?? '')])).join('');
  const point = (_x: number, y: number) => setChosen(Math.max(-1, Math.min(rows.length - 1, Math.floor((y - kTop) / kRow))));
  const words = [...(effect.left_out ?? [])].filter((one) => one.change !== undefined).sort((a, b) => Math.abs(b.change!) - Math.abs(a.change!));
  const textOf = (one: typeof words[number]) => trace.sequence(one.tokens.seq).tokens.slice(one.tokens.begin, one.tokens.end).map((token) => token.text).join('').trim();
  const rank = agreement(every), said = nameOf(effect), row = rows[chosen];
  return (
    <div class="with-note">
      <div>
        <p class="row-name">Why did it choose</p>
        <p class="words chooser">{effects.map((one, i) => <button type="button" class={`chip query ${i === at ? 'now' : ''}`} aria-pressed={i === at} onClick={() => { setChosen(-1); view.set({why: i}); }}>
          <bdi>{nameOf(one)}</bdi></button>)}</p>
        <p class="lead">{effect.against === undefined
          ? <>It gave <Word>{said}</Word> {percent(effect.value)}.{words[0] && <> Without <Word>{textOf(words[0])}</Word> in the text, it gives it <b>{percent(effect.value + words[0].change!)}</b>.</>}</>
          : <><Against name={effect.name} value={effect.value} />.{words[0] && <> Without <Word>{textOf(words[0])}</Word> in the text, <b><Against name={effect.name} value={effect.value + words[0].change!} /></b>.</>}
            <span class="soft"> ({effect.name} = {number(effect.value, 2)})</span></>}</p>
        {layer && way && <WayOf {...{view, effect, layer, way}} />}
        {layer ? <>
          <p class="controls">
            <label>Links of <select value={layer.path} onChange={(e) => view.set({layer: e.currentTarget.value, head: -1})}>{layers.map((one) => <option value={one.path}>{one.path}</option>)}</select></label>
            <label>Head <select value={head} onChange={(e) => view.set({layer: layer.path, head: Number(e.currentTarget.value)})}>{layer.heads.length > 1 && <option value={-1}>all</option>}{layer.heads.map((one, i) => <option value={i}>{one}</option>)}</select></label>
            {methods.length > 1 && <label>Beside it <select value={method} onChange={(e) => view.set({method: e.currentTarget.value as Method})}>{methods.map((one) => <option value={one}>{kMethods[one].name}</option>)}</select></label>}
          </p>
          <Figure label={`Weights of ${layer.path} beside what is measured, of ${rows.length} words`} make={make} name="effect" csv={csv} onPoint={point} onLeave={() => setChosen(-1)} />
          {every.length > kMostRows && <p class="soft">{whole ? `All ${every.length} words.` : `The ${rows.length} of ${every.length} words with the largest numbers, in the order of the text.`}{' '}
            <button type="button" class="link" onClick={() => { setChosen(-1); setWhole(!whole); }}>{whole ? 'fewer' : 'all'}</button></p>}
          <p class="readout"><output>{row ? <><Word>{row.unit.label}</Word>: {columns.map((one) => `${one.title} ${one.of(row) === undefined ? 'not measured' : one.text(one.of(row)!)}`).join(', ')}
            {row.measured !== undefined && effect.against === undefined && <>: {percent(effect.value)} with it, {percent(effect.value - row.measured)} without</>}</>
            : rank === undefined ? '' : <>Do large weights mean large effects? Here the ranks of both agree by <b>{number(rank, 2)}</b> (1: the same order, 0: none, −1: the other way round).</>}</output></p>
        </> : <Empty>This model has no attention from this word. The measured effects of words are below.</Empty>}
        {!layer && <table><tbody>{words.map((one) => <tr><th>{textOf(one)}</th><td>{signed(-one.change!)}</td></tr>)}</tbody></table>}
        <Heads {...view} effect={effect} />
      </div>
      <Note title="A weight is not an explanation">
        <p>A weight says where a head <b>looked</b>. Whether the choice <b>depends</b> on it is another question, and this page answers it by trying:</p>
        <p><b>Measured</b>: the word is taken out of the text, the model reads the rest, and is asked for the same word again. The bar is how much its log-probability was helped (to the right) or hindered by the word.</p>
        {method === 'gradients' && <p><b>Predicted</b>: the weight times what a slightly larger weight would do. It tells links apart that lead to the same word; far from small changes it can be wrong.</p>}
        {method === 'values' && <p><b>Passed on</b>: the weight times the length of the vector that it carries. A head that rests looks at a word with nothing in it.</p>}
        {method === 'integrated' && <p><b>Integrated</b>: the number, divided among the words on the way from no text to this text. The sum misses the whole by {number(effect.integrated?.error ?? 0, 2)}.</p>}
        {method === 'rollout' && <p><b>Rollout</b>: how much could have come from each word if all layers only passed on what they looked at. It does not know what is explained.</p>}
        <p>Where bars of one row disagree, believe the measured one. Two words that say the same can each be left out without harm: then both measure as little.</p>
      </Note>
    </div>
  );
}

// From the word that matters to the choice, over the word that was looked at.
function WayOf({view, effect, layer, way}: { view: View; effect: Effect; layer: Attention; way: Way }) {
  const {matters, looked, by} = way, chosen = /^log p\((.*)\) - log p\(/.exec(effect.name)?.[1] ?? nameOf(effect), M = <Word>{matters.unit.label}</Word>, L = <Word>{looked.unit.label}</Word>;
  if (matters === looked) return <p class="way">When it chose <Word>{chosen}</Word>, it looked at {M} itself ({matters.weight.toFixed(2)} in {layer.path}).</p>;
  const show = () => by && view.set({view: 'map', layer: by.layer.path, head: by.head, pinned: true, ...placeIn(view, by, way)});
  return (
    <p class="way">When it chose <Word>{chosen}</Word>, it looked at {L} ({looked.weight.toFixed(2)} in {layer.path}){matters.weight >= 0 && <>, {matters.weight < 0.05 ? 'not' : 'less'} at {M} ({matters.weight.toFixed(2)})</>}.{' '}
      {by ? <>But {L} was more than itself by then: before, it had looked at {M} ({by.weight.toFixed(2)} in <button type="button" class="link" onClick={show}>{by.layer.path}, head {by.layer.heads[by.head]}</button>).{' '}
        {by.off !== undefined ? <>With that head switched off, {effect.against === undefined
          ? <>it gives <Word>{chosen}</Word> <b>{percent(effect.value + by.off)}</b> (with it, {percent(effect.value)})</> : <><b><Against name={effect.name} value={effect.value + by.off} /></b> (with it, {timesOf(effect.value)})</>}.</>
          : <>What happens with that head switched off was not measured.</>}</>
        : <>No head in which {L} looked most at {M} was recorded: its way is not to be seen in single weights.</>}</p>
  );
}

function placeIn({trace, choices}: View, by: NonNullable<Way['by']>, way: Way): { query: number; key: number } {
  const panel = panelOf(trace, by.layer, by.head, choices);
  // Units of the way begin at the first key of the choice's layer, which is that of the text.
  return {query: Math.max(0, panel.queries.findIndex((one) => one.index.includes(way.looked.unit.index[0]))), key: Math.max(0, panel.keys.findIndex((one) => one.index.includes(way.matters.unit.index[0])))};
}

// How many times as likely, of the difference of log-probabilities.
function timesOf(value: number): string {
  const times = Math.exp(Math.abs(value));
  return times >= 100 ? Number(times.toPrecision(2)).toLocaleString('en') : number(times, times >= 10 ? 0 : 1);
}

// 'a is 7 times as likely as b', from log p(a) - log p(b).
function Against({name, value}: { name: string; value: number }) {
  const [, a, b] = /^log p\((.*)\) - log p\((.*)\)$/.exec(name) ?? [];
  if (a === undefined) return <>{name} is {number(value, 2)}</>;
  const [more, less] = value >= 0 ? [a, b] : [b, a];
  return <><Word>{more}</Word> is {timesOf(value)} times as likely as <Word>{less}</Word></>;
}

function Heads({effect, ...view}: View & { effect: Effect }) {
  const [all, setAll] = useState(false), heads = effect.heads ?? [], most = Math.max(1e-9, ...heads.map((one) => Math.max(Math.abs(one.gradient), Math.abs(one.off ?? 0))));
  if (!heads.length) return null;
  const bar = (x: number | undefined) => (x === undefined ? <td class="soft">not measured</td>
    : <td class="both"><i style={{width: `${50 * Math.abs(x) / most}%`, [x < 0 ? 'right' : 'left']: '50%'}} class={x < 0 ? 'minus' : 'plus'} /><span>{signed(x)}</span></td>);
  return (
    <>
      <h3>What each head is worth to it</h3>
      <div class="scroll"><table class="worth">
        <thead><tr><th>head</th><th>predicted by gradient</th><th>measured: on − off</th></tr></thead>
        <tbody>{heads.slice(0, all ? undefined : kFew).map((one) => <tr>
          <th scope="row"><button type="button" class="link" onClick={() => view.set({view: 'map', layer: one.path, head: Math.max(0, view.layers.find((layer) => layer.path === one.path)?.heads.indexOf(one.head) ?? 0)})}>{one.path}.{one.head}</button></th>
          {bar(one.gradient)}{bar(one.off === undefined ? undefined : -one.off)}</tr>)}</tbody>
      </table></div>
      {heads.length > kFew && !all && <button type="button" onClick={() => setAll(true)}>all {heads.length} heads</button>}
    </>
  );
}
