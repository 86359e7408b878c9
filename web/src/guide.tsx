// SPDX-License-Identifier: Apache-2.0
// The question that each view answers, and the view with the next question: a way through the page for who sees it for the first time.
import type {View} from './context';
import {number} from './numbers';
import {cell, type Choices, type Panel, type ViewName} from './panel';
import {Word} from './parts';
import {mostDifferent} from './views/compare';

export const kQuestions: Record<ViewName, string> = {
  text: 'What did it look at?', walk: 'How did a weight come about?', map: 'What did one head look at?', heads: 'What do all heads look at?',
  output: 'What did it say, and what nearly?', effect: 'Why did it say that?', compare: 'What changes with the text?',
  states: 'What does it remember?', table: 'What are the numbers?',
};

export const kSteps = ['Project', 'Score', 'Scale', 'Mask', 'Softmax', 'Mix'];  // of the walk
interface Step { change: Partial<Choices>; text: any }

// What comes after a view, in the words of what is on the screen.
function following(view: View): Step | undefined {
  const {choices, panel, trace, traces} = view;
  switch (choices.view) {
    case 'text': return panel && towardsWalk(view, panel);
    case 'walk': return choices.step < 6 ? {change: {step: choices.step + 1}, text: <>step {choices.step + 1}, {kSteps[choices.step]}</>} : {change: {view: 'map'}, text: <>What did the other words look at?</>};
    case 'map': return {change: {view: 'heads'}, text: <>What do all the other heads look at?</>};
    case 'heads': return {change: {view: 'output'}, text: <>What did it say with all that?</>};
    case 'output': return trace.raw.effects?.length ? {change: {view: 'effect', head: -1}, text: <>Why did it say that?</>} : undefined;
    case 'effect': return traces.length > 1 ? {change: {view: 'compare', ...whereDifferent(view)}, text: <>What if the text is another one?</>} : undefined;
    default: return undefined;
  }
}

// A mean has no steps of its own: the walk is that of the head that looked most.
function towardsWalk({choices, trace}: View, panel: Panel): Step | undefined {
  const from = panel.queries[choices.query], to = panel.keys[choices.key];
  const all = trace.tensor(panel.layer.weights);
  if (!from || !to || !all || !(cell(panel, choices.query, choices.key) >= 0)) return undefined;
  const [, T, S] = all.shape, t = from.index[0], s = to.index[0];  // the walk is over tokens: of words, over their first ones
  const weights = panel.layer.heads.map((_, h) => all.data[(h * T + t) * S + s]);
  const head = panel.head < 0 ? weights.indexOf(Math.max(...weights)) : panel.head;
  return {change: {view: 'walk', step: 1, head, pinned: true}, text: <>How did <Word>{from.label}</Word> come to give {number(weights[head], 2)} to <Word>{to.label}</Word>{panel.head < 0 && <> in head {panel.layer.heads[head]}</>}?</>};
}

export const whereDifferent = ({traces, choices}: View) => (traces.length > 1 ? mostDifferent(traces[choices.trace], traces[choices.trace === 0 ? 1 : 0], choices.merge) : undefined);

export function Next(view: View) {
  const next = following(view);
  if (!next) return null;
  return <p class="next"><button type="button" onClick={() => view.set(next.change)}><span class="soft">Next </span>{next.text} <span aria-hidden="true">→</span></button></p>;
}
