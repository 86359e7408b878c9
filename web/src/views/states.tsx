// SPDX-License-Identifier: Apache-2.0
// What a recurrent layer remembers, word by word, and what its gates let through.
import {useMemo} from 'preact/hooks';
import {cividis, signed} from '../colour';
import type {View} from '../context';
import {csvLine, Figure, type Drawing} from '../figure';
import {number} from '../numbers';
import {Empty, Note} from '../parts';
import {tokenLabel} from '../words';

export function StatesView(view: View) {
  const {trace, choices} = view;
  const states = trace.states(choices.hyp);
  const [path, wanted] = choices.state.split('/');
  const state = states.find((one) => one.path === path) ?? states[0];
  const parts = state ? [...(state.h ? ['h'] : []), ...(state.c ? ['c'] : []), ...(state.gates ? state.names ?? [] : [])] : [];
  const part = parts.includes(wanted) ? wanted : parts[0];
  const data = useMemo(() => {
    if (!state || !part) return undefined;
    const T = state.tokens.end - state.tokens.begin, gate = (state.names ?? []).indexOf(part);
    const tensor = trace.tensor(part === 'h' ? state.h : part === 'c' ? state.c : state.gates)!;
    const H = tensor.shape[tensor.shape.length - 1], gates = part === 'h' || part === 'c' ? 1 : tensor.shape[1], offset = Math.max(0, gates > 1 || gate > 0 ? gate : 0);
    const values = new Float64Array(T * H);
    for (let t = 0; t < T; ++t) for (let i = 0; i < H; ++i) values[t * H + i] = tensor.data[(t * gates + offset) * H + i];
    return {T, H, values};
  }, [trace, state, part]);
  const isGate = part !== 'h' && part !== 'c' && part !== 'candidate';
  const most = data ? Math.max(1e-9, ...data.values.map(Math.abs)) : 1;
  const labels = state ? Array.from({length: data?.T ?? 0}, (_, t) => tokenLabel(trace.sequence(state.tokens.seq), state.tokens.begin + t)) : [];
  const make = useMemo(() => (width: number): Drawing => {
    if (!data) return {width, height: 1, draw: () => {}};
    const {T, H, values} = data, left = 100, w = Math.min(14, (width - left - 8) / H), h = T > 60 ? 6 : 20;
    return {width, height: T * h + 30, draw: (to, theme) => {
      for (let t = 0; t < T; ++t) {
        if (h >= 12 || t % 3 === 0) to.text(left - 8, 4 + (t + 0.5) * h, labels[t].slice(0, 13), {align: 'end', size: h >= 12 ? 12 : 9});
        for (let i = 0; i < H; ++i) to.rect(left + i * w, 4 + t * h, w - (w > 4 ? 0.5 : 0), h - (h > 8 ? 1 : 0), isGate ? cividis(values[t * H + i]) : signed(values[t * H + i] / most));
      }
      to.text(left, T * h + 16, `${H} numbers of ${part}: ${isGate ? 'dark 0, shut; bright 1, open' : `purple −${number(most, 2)}, orange ${number(most, 2)}`}`, {size: 11, fill: theme.soft});
    }};
  }, [data, part]);
  if (!state || !part) return <Empty>This model has no recurrent states: its words meet by attention alone.</Empty>;
  const csv = () => csvLine(['token', 'word', ...Array.from({length: data!.H}, (_, i) => `${part}${i}`)]) +
    labels.map((label, t) => csvLine([t, label, ...Array.from(data!.values.slice(t * data!.H, (t + 1) * data!.H), (x) => x.toPrecision(6))])).join('');
  return (
    <div class="with-note">
      <div>
        <p class="row-of">
          <label>Layer <select value={state.path} onChange={(e) => view.set({state: `${e.currentTarget.value}/${part}`})}>{states.map((one) => <option value={one.path}>{one.path}</option>)}</select></label>
          <label>shows <select value={part} onChange={(e) => view.set({state: `${state.path}/${e.currentTarget.value}`})}>{parts.map((one) => <option value={one}>{one === 'h' ? 'state h' : one === 'c' ? 'cell c' : `gate: ${one}`}</option>)}</select></label>
        </p>
        <Figure label={`${part} of ${state.path}: ${data!.T} words, ${data!.H} numbers each`} make={make} name="states" csv={csv} />
        {!state.gates && state.cell !== 'rnn' && <p class="soft">Gates were not captured.</p>}
      </div>
      <Note title={`A memory that is read ${state.direction === 'forward' ? 'from the first word on' : 'from the last word back'}`}>
        <p>{state.cell === 'rnn' ? 'A recurrent layer' : state.cell === 'gru' ? 'A GRU' : 'An LSTM'} reads one word at a time and keeps a list of numbers, its <b>state</b>. Each line is that list after a word.</p>
        {state.cell !== 'rnn' && <p><b>Gates</b> are numbers between 0 and 1 that say how much of the old is kept and how much of the new is let in.</p>}
        <p>A column that keeps its colour over many words remembers something; one that flips at a word reacts to it.</p>
      </Note>
    </div>
  );
}
