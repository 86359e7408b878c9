// SPDX-License-Identifier: Apache-2.0
// What the model said, word by word: what else was likely, what it looked at, and what the search kept beside it.
import {useEffect, useMemo} from 'preact/hooks';
import type {View} from '../context';
import {cellAt, drawMap, layoutOf} from '../draw_map';
import {csvLine, exportsNow, Figure} from '../figure';
import {number} from '../numbers';
import {headName, panelOf} from '../panel';
import {Bar, Empty, Legend, Note, said, Word} from '../parts';
import type {Attention} from '../trace';
import {shown} from '../words';
import {panelCsv} from './map';

export function OutputView(view: View) {
  const {trace, choices} = view, result = trace.results[choices.hyp] ?? trace.results[0];
  const cross = view.layers.filter((one) => one.role === 'cross' && one.q.seq === result?.seq);
  const layer: Attention | undefined = cross.includes(view.layer!) ? view.layer : cross[cross.length - 1];
  const head = layer === view.layer ? choices.head : -1;
  const panel = useMemo(() => (layer ? panelOf(trace, layer, layer.weights ? head : Math.max(0, head), choices) : undefined), [trace, layer, head, choices.merge, choices.special]);
  const csv = () => csvLine(['row', 'piece', 'logprob', 'forced', 'rank', 'alternative', 'alternative_logprob']) +
    result.steps.flatMap((step) => (step.alternatives ?? [step]).map((other, i) => csvLine([step.row, step.piece, step.logprob, String(step.forced), i + 1, other.piece, other.logprob]))).join('');
  const tags = trace.raw.model.task === 'tag';
  useEffect(() => { if (!panel) exportsNow.current = {name: 'output', csv}; });
  const at = view.hover ?? choices, same = layer === view.layer;
  const make = useMemo(() => (width: number) => drawMap(panel!, choices.scale, choices.special === 'dim', {query: same ? at.query : -1, key: same ? at.key : -1, pinned: choices.pinned}, width,
    `${layer!.path}, ${headName(layer!, panel!.head)}`), [panel, choices.scale, choices.special, same && at.query, same && at.key]);
  if (!result?.steps.length) return <Empty>Nothing was said: the text was only read.</Empty>;
  const point = (x: number, y: number, click: boolean, width: number) => {
    const found = panel && cellAt(layoutOf(panel, width), x, y);
    if (click && found && layer) view.set({layer: layer.path, head: panel.head, query: found.query, key: Math.max(0, found.key), pinned: true});
  };
  return (
    <div class="with-note">
      <div>
        {!tags && trace.raw.model.task !== 'translate' && <p class="lead"><bdi>{result.text || '(nothing)'}</bdi></p>}
        <ol class="choices">
          {result.steps.map((step) => {
            const word = tags ? trace.sequence(result.seq).tokens[step.row]?.text.trim() : undefined;
            return (
              <li class={step.forced ? 'forced' : ''}>
                <span class="said"><bdi>{word !== undefined ? `${word} / ${shown(step.piece)}` : shown(step.piece)}</bdi></span>
                <Bar value={Math.exp(step.logprob)} /><b>{step.forced ? 'given' : `${number(100 * Math.exp(step.logprob), 1)}%`}</b>
                <span class="others soft">{(step.alternatives ?? []).filter((one) => one.id !== step.id).slice(0, 4).map((one) => <><bdi>{shown(one.piece)}</bdi> {number(100 * Math.exp(one.logprob), one.logprob < -4.6 ? 2 : 1)}%&ensp;</>)}</span>
              </li>
            );
          })}
        </ol>
        {panel?.cells && <>
          <h3>Where it looked for each word</h3>
          <Legend scale={choices.scale} kinds={false} />
          <Figure label={`Alignment: ${layer!.path}`} make={make} name="alignment" csv={() => panelCsv(panel)} onPoint={point} />
          {same && <p class="readout"><output>{said(panel, at.query, at.key)}</output></p>}
        </>}
        {!panel && !tags && trace.raw.model.task === 'translate' && <Empty>This model has no attention from the translation to the source: it remembers the whole sentence in one state.</Empty>}
        {!tags && <h3>Hypotheses</h3>}
        {tags ? null : trace.results.length > 1
          ? <table class="hyps"><thead><tr><th>text</th><th>log-probability</th><th>score</th></tr></thead><tbody>
            {trace.results.map((one, i) => <tr class={i === choices.hyp ? 'chosen' : ''}><td><button type="button" class="plain" onClick={() => view.set({hyp: i})}><bdi>{one.text || '(nothing)'}</bdi></button>{!one.finished && <i class="soft"> cut off</i>}</td>
              <td>{number(one.logprob, 2)}</td><td>{number(one.score)}</td></tr>)}</tbody></table>
          : <p class="soft">One alone was kept. A wider search (<code>--beam 4</code>) keeps others beside it.</p>}
      </div>
      <Note title={tags ? 'A tag for each word' : 'One word after the other'}>
        {tags ? <p>For each word the model gives a probability to every tag. The bar is that of the one it took, and beside it are the next ones.</p>
          : <>
            <p>The model never writes a sentence. It gives a probability to <b>every</b> word it knows, takes one, reads it, and does so again. The bar is the probability of the word taken; beside it are those that were nearly taken.</p>
            {panel && <p>The map has a row for each word written, <b>as it was when the word was chosen</b>: the columns are the words read.</p>}
            <p>The search follows several beginnings at once. Their <b>score</b> is the log-probability after the length penalty.</p>
          </>}
        {result.steps.length > 0 && <p>Least sure: <Word>{shown(least(result.steps).piece)}</Word> with {number(100 * Math.exp(least(result.steps).logprob), 1)}%.</p>}
      </Note>
    </div>
  );
}

function least<T extends { logprob: number; forced: boolean }>(steps: T[]): T {
  return steps.reduce((a, b) => (!b.forced && (a.forced || b.logprob < a.logprob) ? b : a));
}
