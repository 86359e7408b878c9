// SPDX-License-Identifier: Apache-2.0
// Six steps from a query to what it gets, with the model's own numbers, computed again here.
import {useEffect, useMemo} from 'preact/hooks';
import type {View} from '../context';
import {csvLine, exportsNow} from '../figure';
import {kSteps, Next} from '../guide';
import {number, walk, type Walk} from '../numbers';
import {Bar, Empty, Note, Strip, Word} from '../parts';
import {keyUnits, queryUnits} from '../words';

const kMostRows = 30;

export function WalkView(view: View) {
  const {panel, choices, trace} = view;
  const layer = panel?.layer;
  const head = Math.max(0, choices.head);
  // The walk is over tokens: a word of several pieces begins with its first one.
  const t = panel?.queries[choices.query]?.index[0] ?? 0, s = panel?.keys[choices.key]?.index[0] ?? 0;
  const done = useMemo(() => (layer ? walk(trace, layer, head, t) : 'this model has no attention'), [trace, layer, head, t]);
  const queries = useMemo(() => (layer ? queryUnits(trace, layer, false) : []), [trace, layer]);
  const keys = useMemo(() => (layer ? keyUnits(trace, layer.k, false) : []), [trace, layer]);
  useEffect(() => {
    exportsNow.current = {name: 'walk', csv: typeof done === 'string' ? undefined : () => walkCsv(done, keys.map((one) => one.label))};
  }, [done]);
  if (!layer || typeof done === 'string') return <Empty>The steps cannot be shown: {String(done)}.</Empty>;
  const from = queries[t]?.label ?? '?', to = keys[s]?.label ?? '?', step = Math.max(1, Math.min(6, choices.step));
  return (
    <div>
      <p class="lead">How <Word>{from}</Word> came to give <b>{number(done.weights[s])}</b> of its attention to <Word>{to}</Word>
        <span class="soft"> ({layer.path}, head {layer.heads[head]}{choices.head < 0 && '; a mean has no steps'})</span></p>
      <div class="steps" role="group" aria-label="Steps">
        {kSteps.map((name, i) => <button type="button" class={i + 1 === step ? 'now' : ''} aria-current={i + 1 === step ? 'step' : undefined}
          onClick={() => view.set({step: i + 1})}><b>{i + 1}</b> {name}</button>)}
      </div>
      <div class="walk">
        <Note title={`${step}. ${kSteps[step - 1]}`}><StepText {...{view, done, step, t, s, from, to}} />{step < 6 && <Next {...view} />}</Note>
        <div class="ledger-box"><Ledger {...{view, done, step, s, labels: keys.map((one) => one.label), chosen: (key) => pick(view, key)}} /></div>
      </div>
      <Check done={done} tolerance={trace.raw.capture.tolerance} />
    </div>
  );
}

function pick(view: View, token: number): void {
  const unit = view.panel!.keys.findIndex((one) => one.index.includes(token));
  if (unit >= 0) view.set({key: unit, pinned: true});
}

interface StepProps { view: View; done: Walk; step: number; t: number; s: number; from: string; to: string }

function StepText({view, done, step, t, s, from, to}: StepProps) {
  const layer = view.panel!.layer, additive = layer.score.fn === 'additive', D = done.q.length;
  const most = Math.max(...done.q.map(Math.abs), ...done.keys[s].map(Math.abs));
  const root = Math.abs(layer.score.scale - 1 / Math.sqrt(D)) < 1e-6;
  // Over recurrent, convolutional and plain layers the state itself may be all three.
  const itself = layer.path.startsWith('blocks') && done.keys[t]?.every((x, i) => x === done.q[i]);
  if (step === 1) return (
    <>
      <p>{itself ? <>Each word is a list of numbers, its <b>state</b> h. Here it is all three: the <b>query</b> (what am I looking for?), the <b>key</b> (what do I offer?) and the <b>value</b> (what do I give?).</> : additive
        ? <>The decoder's state becomes a <b>query</b> (W s + b), and each state of what was read a <b>key</b> (U h).</>
        : <>Each word is a list of numbers. Three learned tables turn it into a <b>query</b> (what am I looking for?), a <b>key</b> (what do I offer?) and a <b>value</b> (what do I give?).</>}</p>
      <Strip label={`query of ${from}`} values={done.q} max={most} />
      <Strip label={`key of ${to}`} values={done.keys[s]} max={most} />
      {done.values && <Strip label={`value of ${to}`} values={done.values[s]} max={Math.max(...done.values[s].map(Math.abs))} />}
      <p class="soft">Orange is above 0, purple below.{!itself && <> The word's own numbers, before the tables, were not captured.</>}</p>
      {layer.path.startsWith('blocks') && <p class="soft">Here the value is the state h of the layer below, and what comes out is the context c of [h ; c].</p>}
    </>
  );
  if (step === 2) {
    const order = Array.from(done.terms[s].keys()).sort((a, b) => Math.abs(done.terms[s][b]) - Math.abs(done.terms[s][a])).slice(0, 6);
    let sum = 0;
    return (
      <>
        <p>{additive
          ? <>How well do they fit? Add query and key, squash each number with tanh, and weigh it with a learned w: that is the <b>score</b>.</>
          : <>How well do they fit? Multiply the query's numbers with the key's, one by one, and add up: the <b>score</b>. It is large where both point the same way.</>}</p>
        <table class="terms"><thead><tr><th>no.</th><th>query</th><th>key</th><th>{additive ? 'w tanh(q+k)' : 'product'}</th><th>sum so far</th></tr></thead><tbody>
          {order.map((i) => <tr><td>{i}</td><td>{number(done.q[i], 2)}</td><td>{number(done.keys[s][i], 2)}</td><td>{number(done.terms[s][i], 2)}</td><td>{number(sum += done.terms[s][i], 2)}</td></tr>)}
          <tr><td colSpan={4}>and {D - order.length} smaller ones</td><td><b>{number(done.raw[s], 2)}</b></td></tr></tbody></table>
      </>
    );
  }
  if (step === 3) return (
    <>
      <p>{layer.score.scale === 1
        ? <><b>No scale</b> here: this kind of attention uses the score as it is.</>
        : <>Long lists give large sums, and large scores would let one word take all. So scores are {root ? <>divided by the square root of the list's length, √{D} = {number(Math.sqrt(D), 2)}</> : <>multiplied by {number(layer.score.scale, 4)}</>}.</>}</p>
      {layer.score.softcap && <p>They are also kept within ±{layer.score.softcap}: c tanh(s / c).</p>}
      {layer.score.slopes?.length ? <p>And keys that are further away lose {number(layer.score.slopes[Math.max(0, view.choices.head)], 4)} for every place (ALiBi): {number(done.bias[s], 3)} for this one.</p> : null}
      <p class="sum">{number(done.raw[s], 3)} × {number(layer.score.scale, 4)}{done.bias[s] ? ` ${done.bias[s] < 0 ? '−' : '+'} ${number(Math.abs(done.bias[s]), 3)}` : ''} → <b>{number(done.scores[s], 3)}</b></p>
    </>
  );
  if (step === 4) {
    const hidden = done.visible.filter((x) => !x).length;
    return (
      <>
        <p>{hidden === 0
          ? <>Nothing is hidden from <Word>{from}</Word>: all {done.visible.length} keys may be seen.</>
          : <><b>{hidden}</b> of {done.visible.length} keys are hidden{layer.mask.type === 'causal' ? ': they come later, and who writes cannot read what is not written yet' : ''}.</>}</p>
        {hidden > 0 && <p>Hatched scores would have counted, had they been seen. They are not: their weight is exactly 0.</p>}
      </>
    );
  }
  if (step === 5) return (
    <>
      <p>Scores become shares. Take e to the power of each score (less the largest, {number(done.max, 2)}, so that nothing overflows), and divide by their sum Z. Now all are above 0, and together 1.</p>
      <p class="sum">e<sup>{number(done.scores[s] - done.max, 2)}</sup> / {number(done.Z, 3)} = {number(done.exps[s], 4)} / {number(done.Z, 3)} = <b>{number(done.weights[s])}</b></p>
      <p>Entropy {number(done.entropy, 2)}: as if it looked at <b>{number(done.effective, 1)}</b> words alike.</p>
    </>
  );
  return (
    <>
      <p>Each word gives its <b>value</b>, as much of it as its weight says. Their sum is what <Word>{from}</Word> takes along.</p>
      {done.mix ? <Strip label="the sum" values={done.mix} max={Math.max(...done.mix.map(Math.abs))} /> : <p>Values were not captured.</p>}
      {done.norms && <p>A weight is not all: a word with a small value gives little even with a large weight. The last column is weight times length of the value; <Word>{to}</Word> gives {number(done.norms[s], 2)}.</p>}
      <p class="soft">{layer.path.startsWith('blocks') ? 'This sum is the context c. The word goes on as [h ; c]: its own state, and beside it what it took along.'
        : layer.path === 'decoder.cross' ? 'This sum is the context c: the decoder reads it when it chooses the word.' : 'After this, the sums of all heads are put together and go to the next layer.'}</p>
      {(view.trace.raw.effects?.length ?? 0) > 0 && <p>So much for how it looked. <button type="button" class="link" onClick={() => view.set({view: 'effect'})}>What it was worth</button> is another question.</p>}
    </>
  );
}

interface LedgerProps { view: View; done: Walk; step: number; s: number; labels: string[]; chosen: (key: number) => void }

// One line a key, one column more at each step.
function Ledger({done, step, s, labels, chosen, view}: LedgerProps) {
  const S = labels.length, again = (i: number) => labels.indexOf(labels[i]) !== labels.lastIndexOf(labels[i]);  // its place tells it from its likes
  const order = S <= kMostRows ? labels.map((_, i) => i) : Array.from(done.weights.keys()).sort((a, b) => done.weights[b] - done.weights[a]).slice(0, kMostRows);
  const rest = S - order.length, mass = 1 - order.reduce((sum, i) => sum + done.weights[i], 0);
  const mostNorm = done.norms ? Math.max(...done.norms) : 0, now = (n: number) => (n === step ? 'now' : step >= 5 ? 'past' : '');  // past: hidden where there is no room
  return (
    <table class="ledger">
      <thead><tr><th>word</th>{step === 1 && <th class="now">length of its key</th>}
        {step >= 2 && <th class={now(2)}>{view.panel!.layer.score.fn === 'additive' ? 'score' : 'q · k'}</th>}{step >= 3 && <th class={now(3)}>scaled</th>}{step >= 4 && <th class={now(4)}>seen</th>}
        {step >= 5 && <th class={now(5)}>e^(s−max)</th>}{step >= 5 && <th class={step === 5 ? 'now' : ''}>weight</th>}{step >= 6 && <th class={now(6)}>w · |v|</th>}</tr></thead>
      <tbody>{order.map((i) => {
        const hidden = step >= 4 && !done.visible[i] ? 'hidden' : '';
        return (
          <tr class={`${i === s ? 'chosen' : ''} ${hidden}`} onClick={() => chosen(i)}>
            <th><bdi>{labels[i]}</bdi>{again(i) && <small class="soft"> {i + 1}.</small>}</th>
            {step === 1 && <td class="now">{number(Math.sqrt(done.keys[i].reduce((a, x) => a + x * x, 0)), 2)}</td>}
            {step >= 2 && <td class={now(2)}>{number(done.raw[i], 2)}</td>}
            {step >= 3 && <td class={now(3)}>{number(done.scores[i], 2)}</td>}
            {step >= 4 && <td class={now(4)}>{done.visible[i] ? 'yes' : 'masked'}</td>}
            {step >= 5 && <td class={now(5)}>{number(done.exps[i])}</td>}
            {step >= 5 && <td class={`wide ${step === 5 ? 'now' : ''}`}>{number(done.weights[i])}<Bar value={done.weights[i]} /></td>}
            {step >= 6 && <td class={`wide ${now(6)}`}>{done.norms ? <>{number(done.norms[i], 2)}<Bar value={done.norms[i]} max={mostNorm} /></> : 'not captured'}</td>}
          </tr>
        );
      })}</tbody>
      {rest > 0 && <tfoot><tr><td colSpan={7}>and {rest} other words{step >= 5 && ` with ${number(mass)} together`}</td></tr></tfoot>}
    </table>
  );
}

function Check({done, tolerance}: { done: Walk; tolerance: number }) {
  if (!done.differences.length) return <p class="soft">Weights and output were not captured, so the steps cannot be compared with them.</p>;
  const worst = Math.max(...done.differences.map((one) => one.difference)), good = worst <= tolerance;
  return (
    <p class={`check ${good ? 'good' : 'bad'}`}><b>{good ? 'These are the model’s own numbers.' : 'These are NOT the model’s numbers.'}</b> Computed here again, they differ from the recorded
      ones by {done.differences.map((one, i) => <>{i > 0 && ', '}<span class="whole">{one.difference.toExponential(1)}</span> ({one.name})</>)}; the trace allows <span class="whole">{tolerance.toExponential(0)}</span>.</p>
  );
}

function walkCsv(done: Walk, labels: string[]): string {
  return csvLine(['key', 'score', 'scaled', 'seen', 'exp', 'weight', 'weight_times_value_norm']) +
    labels.map((label, i) => csvLine([label, done.raw[i], done.scores[i], String(done.visible[i]), done.exps[i], done.weights[i], done.norms?.[i] ?? 'not captured'])).join('');
}
