// SPDX-License-Identifier: Apache-2.0
// The page around the views: what is looked at, keys, links, saving, opening other traces.
import {Component, type ComponentChildren} from 'preact';
import {useEffect, useMemo, useRef, useState} from 'preact/hooks';
import type {View} from './context';
import {download, exportsNow} from './figure';
import {fromLink, headName, kDefaults, kViews, panelOf, row, strongest, toLink, type Choices, type Panel, type ViewName} from './panel';
import {kQuestions, Next, whereDifferent} from './guide';
import {Empty, said} from './parts';
import {kScales, type ScaleName} from './numbers';
import {turnTheme} from './theme';
import {readTraces, type Attention, type Trace} from './trace';
import {CompareView, mostDifferent} from './views/compare';
import {EffectView} from './views/effect';
import {HeadsView} from './views/heads';
import {MapView} from './views/map';
import {OutputView} from './views/output';
import {StatesView} from './views/states';
import {TableView} from './views/table';
import {TextView} from './views/text';
import {WalkView} from './views/walk';

const kBodies: Record<ViewName, (view: View) => any> = {
  text: TextView, effect: EffectView, map: MapView, heads: HeadsView, walk: WalkView, output: OutputView, compare: CompareView, table: TableView, states: StatesView,
};
const nameOf = (view: ViewName, task: string) =>
  ({text: 'Text', effect: 'Effect', map: 'Map', heads: 'Heads', walk: 'Walk', output: task === 'translate' ? 'Translation' : task === 'tag' ? 'Tags' : 'Output', compare: 'Compare', table: 'Table', states: 'States'})[view];

// Where to begin: the last layer that looks from the output at the input. A comparison begins where texts differ most.
function begin(traces: Trace[], link: Partial<Choices>): Choices {
  const at: Choices = {...kDefaults, ...link};
  const trace = traces[at.trace] ?? traces[0];
  try { return placed(traces, trace, at, link); } catch { return at; }  // the view says what is wrong with it
}

function placed(traces: Trace[], trace: Trace, at: Choices, link: Partial<Choices>): Choices {
  if (link.layer !== undefined) return at;
  const different = traces.length > 1 && at.view === 'compare' ? mostDifferent(traces[0], traces[1], at.merge) : undefined;
  if (different) return {...at, ...different, ...link};
  const layers = trace.layers(0), cross = layers.filter((one) => one.role === 'cross' && one.path !== 'decoder.first');
  const layer: Attention | undefined = cross[cross.length - 1] ?? layers[layers.length - 1];
  if (layer) {
    at.layer = layer.path;
    if (link.head === undefined) at.head = layer.weights && layer.heads.length > 1 ? -1 : 0;
    if (link.key === undefined) at.key = strongest(row(panelOf(trace, layer, at.head, at), at.query), 1, 1)[0] ?? 0;
  } else if (link.view === undefined) at.view = 'states';
  return at;
}

const clamp = (x: number, n: number) => Math.max(0, Math.min(n - 1, x));

export function App({first}: { first: Trace[] }) {
  const [traces, setTraces] = useState(first);
  const [raw, setRaw] = useState<Choices>(() => begin(first, fromLink(location.hash)));
  const started = useRef(raw);
  const [hover, setHover] = useState<View['hover']>(undefined);
  const [spoken, setSpoken] = useState('');
  const [problem, setProblem] = useState('');
  const help = useRef<HTMLDialogElement>(null), question = useRef<HTMLHeadingElement>(null);
  const own = useRef('');

  const trace = traces[clamp(raw.trace, traces.length)];
  const hyp = clamp(raw.hyp, trace.results.length);
  const layers = useMemo(() => trace.layers(hyp), [trace, hyp]);
  const layer = layers.find((one) => one.path === raw.layer) ?? layers[layers.length - 1];
  const head = layer ? Math.max(layer.weights && layer.heads.length > 1 ? -1 : 0, Math.min(raw.head, layer.heads.length - 1)) : 0;
  const [panel, damage] = useMemo((): [Panel | undefined, string] => {
    try { return [layer ? panelOf(trace, layer, head, raw) : undefined, '']; } catch (error) { return [undefined, (error as Error).message]; }
  }, [trace, layer, head, raw.merge, raw.special]);
  const choices: Choices = {...raw, hyp, head, layer: layer?.path ?? '', query: clamp(raw.query, panel?.queries.length ?? 1), key: clamp(raw.key, panel?.keys.length ?? 1)};

  const set = (change: Partial<Choices>) => {
    // Words keep their place when pieces are joined or split.
    if (change.merge !== undefined && panel && layer) {
      const next = panelOf(trace, layer, head, {...choices, ...change});
      const t = panel.queries[choices.query]?.index[0] ?? 0, s = panel.keys[choices.key]?.index[0] ?? 0;
      change = {...change, query: next.queries.findIndex((one) => one.index.includes(t)), key: next.keys.findIndex((one) => one.index.includes(s))};
    }
    setRaw({...choices, ...change});
  };
  // A comparison begins where texts differ most, unless one came with a choice of one's own.
  const untouched = !raw.pinned && raw.layer === started.current.layer && raw.head === started.current.head;
  const view: View = {traces, trace, layers, layer, panel, choices, set, hover, setHover};

  useEffect(() => {
    const link = toLink(choices);
    if (link !== location.hash) { own.current = link; location.replace(link); }
  }, [toLink(choices)]);
  useEffect(() => {
    const changed = () => { if (location.hash !== own.current) setRaw(begin(traces, fromLink(location.hash))); };
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, [traces]);
  const seen = useRef(choices.view);
  useEffect(() => {  // another view begins at its top, with its tab in sight
    if (seen.current === choices.view) return;
    seen.current = choices.view;
    scrollTo(0, 0);
    document.querySelector('.tabs .now')?.scrollIntoView({inline: 'center', block: 'nearest'});
    if (document.activeElement === document.body) question.current?.focus({preventScroll: true});  // the button that led here is gone
  }, [choices.view]);
  useEffect(() => { if (panel) setSpoken(`${panel.layer.path} ${headName(panel.layer, head)}. ${said(panel, choices.query, choices.key)}`); }, [panel, choices.query, choices.key]);

  const open = async (files: FileList | null | undefined) => {
    if (!files?.length) return;
    try {
      const added: Trace[] = [];
      for (const file of Array.from(files)) added.push(...readTraces(await file.text(), file.name));
      const all = [...traces, ...added];
      setTraces(all);
      setProblem('');
      setRaw({...begin(all, {view: 'compare'}), trace: 0});
    } catch (error) { setProblem((error as Error).message); }
  };
  useKeys(view, () => help.current?.open ? help.current.close() : help.current?.showModal());
  useEffect(() => {
    const over = (event: DragEvent) => event.preventDefault();
    const drop = (event: DragEvent) => { event.preventDefault(); void open(event.dataTransfer?.files); };
    addEventListener('dragover', over);
    addEventListener('drop', drop);
    return () => { removeEventListener('dragover', over); removeEventListener('drop', drop); };
  });

  const Body = kBodies[choices.view], {dropped} = trace.raw.capture;
  return (
    <>
      <header class="top">
        <h1><span class="mark" aria-hidden="true" />heed <small>what the model looked at</small></h1>
        <div class="tools">
          <Save />
          <label class="button">Open<input type="file" accept=".json,application/json" multiple onChange={(e) => void open(e.currentTarget.files)} /></label>
          <button type="button" onClick={turnTheme} title="light or dark" aria-label="Light or dark">◐</button>
          <button type="button" onClick={() => help.current?.showModal()} aria-label="Help: keys">?</button>
        </div>
      </header>
      {problem && <p class="bad check" role="alert">{problem}</p>}
      <Sentence {...view} />
      <nav aria-label="Views"><div class="tabs">
        {kViews.map((name) => <button type="button" class={name === choices.view ? 'now' : ''} aria-current={name === choices.view ? 'page' : undefined} onClick={() => set({view: name, ...(name === 'compare' && untouched ? whereDifferent(view) : {})})}>{nameOf(name, trace.raw.model.task)}</button>)}
      </div></nav>
      <h2 class="question" ref={question} tabIndex={-1}>{kQuestions[choices.view]}</h2>
      <Controls {...view} />
      <main key={choices.view} data-view={choices.view}>
        <Guard key={`${choices.view} ${choices.layer} ${choices.trace}`}>{damage ? <Empty>This layer cannot be shown: {damage}</Empty> : <Body {...view} />}</Guard>
        {!damage && (choices.view !== 'walk' || choices.step >= 6) && <Next {...view} />}
      </main>
      <footer>
        {(choices.view !== 'effect' || !trace.raw.effects?.length) && <p><b>A weight is not an explanation.</b> It says where a head looked, not that the output depends on it: other heads, other layers and the word itself carry the same news, and changing a weight may change nothing.
          {trace.raw.effects?.length ? <> What was measured, the output without a word or a head, is in <button type="button" class="link" onClick={() => set({view: 'effect'})}>Effect</button>.</> : <> What happens to the output without it was not measured in this trace.</>}</p>}
        <p class="soft">{trace.raw.tool} · {trace.raw.model.kind}, {trace.raw.model.task} · width {trace.raw.model.width}{dropped.length === 1 && <> · not captured: {dropped[0]}</>}</p>
        {dropped.length > 1 && <details class="soft"><summary>not captured: {dropped.length} things</summary>{dropped.join('; ')}</details>}
      </footer>
      <div class="visually-hidden" aria-live="polite" id="live">{spoken}</div>
      <dialog ref={help} aria-label="Keys"><Help /><form method="dialog"><button>Close</button></form></dialog>
    </>
  );
}

// A view whose data is broken says so, and the others stay.
class Guard extends Component<{ children?: ComponentChildren }, { message: string }> {
  state = {message: ''};
  componentDidCatch(error: Error) { this.setState({message: error.message}); }
  render() { return this.state.message ? <Empty>This cannot be shown: {this.state.message}</Empty> : this.props.children; }
}

function Save() {
  const [message, setMessage] = useState('');
  const save = async (kind: 'svg' | 'png' | 'csv') => {
    const now = exportsNow.current, make = now[kind];
    const content = make && (await make());
    if (!content) return setMessage(`this view has no ${kind.toUpperCase()}`);
    setMessage('');
    return download(`heed-${now.name}.${kind}`, content, kind === 'svg' ? 'image/svg+xml' : 'text/csv');
  };
  return (
    <span class="save" role="group" aria-label="Save this view"><span class="soft" role="status">{message || 'Save'}</span>
      {(['svg', 'png', 'csv'] as const).map((kind) => <button type="button" onClick={() => void save(kind)}>{kind.toUpperCase()}</button>)}</span>
  );
}

function Sentence({traces, choices, set, trace}: View) {
  const result = trace.results[choices.hyp];
  return (
    <section class="sentence">
      {traces.length > 1 && <div class="which" role="group" aria-label="Texts">{traces.map((one, i) =>
        <button type="button" class={i === choices.trace ? 'now' : ''} aria-pressed={i === choices.trace} onClick={() => set({trace: i, hyp: 0})}><bdi>{clip(one.input().text)}</bdi>{one.raw.label && <small class="label"> {one.raw.label}</small>}</button>)}</div>}
      {traces.length === 1 && <p class="source"><bdi>{clip(trace.input().text)}</bdi></p>}
      {trace.raw.model.task === 'translate' && result && <p class="target"><span aria-hidden="true">→ </span><bdi>{clip(result.text)}</bdi></p>}
    </section>
  );
}
const clip = (text: string) => (text.length > 600 ? text.slice(0, 600) + '…' : text);

function Controls({choices, set, layers: all, layer, panel, trace}: View) {
  if (choices.view === 'states' || choices.view === 'effect' || !layer) return null;
  const needsHead = choices.view !== 'heads';
  // A translation is aligned by layers that look from it at the source.
  const cross = choices.view === 'output' ? all.filter((one) => one.role === 'cross' && one.path !== 'decoder.first') : [];
  const layers = cross.length ? cross : all, shown = layers.includes(layer) ? layer : layers[layers.length - 1];
  const head = shown === layer ? choices.head : -1;
  return (
    <div class="controls">
      {needsHead && <label>Layer <select value={shown.path} onChange={(e) => set({layer: e.currentTarget.value})}>{layers.map((one) => <option value={one.path}>{layerName(one)}</option>)}</select></label>}
      {needsHead && <label>Head <select value={head} onChange={(e) => set({layer: shown.path, head: Number(e.currentTarget.value)})}>
        {layer.weights && layer.heads.length > 1 && choices.view !== 'walk' && <option value={-1}>mean of {layer.heads.length}</option>}
        {choices.view === 'walk' && choices.head < 0 && <option value={-1}>{layer.heads[0]}</option>}
        {layer.heads.map((one, i) => <option value={i}>{one}</option>)}</select></label>}
      {panel && needsHead && choices.view !== 'output' && <label>Word <select value={choices.query} onChange={(e) => set({query: Number(e.currentTarget.value), pinned: true})}>{options(panel.queries.map((one) => one.label), choices.query)}</select></label>}
      {panel && choices.view === 'walk' && <label>looks at <select value={choices.key} onChange={(e) => set({key: Number(e.currentTarget.value), pinned: true})}>{options(panel.keys.map((one) => one.label), choices.key)}</select></label>}
      {trace.results.length > 1 && <label>Hypothesis <select value={choices.hyp} onChange={(e) => set({hyp: Number(e.currentTarget.value)})}>{trace.results.map((_, i) => <option value={i}>{i + 1}</option>)}</select></label>}
      {choices.view !== 'walk' && <More {...{choices, set, panel, needsHead}} />}
    </div>
  );
}

// What one can do without at first: it is open where something of it was chosen.
function More({choices, set, panel, needsHead}: Pick<View, 'choices' | 'set' | 'panel'> & { needsHead: boolean }) {
  const chosen = choices.scale !== kDefaults.scale || choices.special !== kDefaults.special || !choices.merge;
  return (
    <details class="more" open={chosen}><summary>Colours and words</summary><div class="controls">
      <label>Colours <select value={choices.scale} onChange={(e) => set({scale: e.currentTarget.value as ScaleName})}>{Object.entries(kScales).map(([name, text]) => <option value={name}>{text}</option>)}</select></label>
      {needsHead && <label>Special tokens, sinks <select value={choices.special} onChange={(e) => set({special: e.currentTarget.value as Choices['special']})}>
        <option value="show">shown</option><option value="dim">dimmed</option><option value="out">left out, rows rescaled</option></select></label>}
      {needsHead && panel && <label class="check-label"><input type="checkbox" checked={choices.merge} onChange={(e) => set({merge: e.currentTarget.checked})} /> pieces as words</label>}
    </div></details>
  );
}

function options(labels: string[], chosen: number) {
  const first = labels.length <= 500 ? 0 : Math.max(0, chosen - 250);
  return labels.slice(first, first + 500).map((label, i) => <option value={first + i}>{first + i + 1}. {label}</option>);
}

const layerName = (layer: Attention) => `${layer.path} – ${layer.role === 'cross' ? 'output looks at input' : layer.role === 'masked' ? 'looks back at its own words' : 'words look at each other'}`;

function useKeys(view: View, showHelp: () => void): void {
  const now = useRef(view);
  now.current = view;
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) return;
      if (event.key === '?') { event.preventDefault(); return showHelp(); }
      if (document.querySelector('dialog[open]')) return;
      if (event.key === 'Enter' && target.tagName === 'BUTTON') return;
      const change = keyChange(now.current, event.key);
      if (!change) return;
      event.preventDefault();
      now.current.setHover(undefined);
      now.current.set(change);
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, []);
}

function keyChange({panel, choices, layers, layer}: View, key: string): Partial<Choices> | undefined {
  if (!panel || !layer) return undefined;
  const Q = panel.queries.length, K = panel.keys.length, text = choices.view === 'text';
  const toQuery = (query: number): Partial<Choices> => ({query: clamp(query, Q), ...(text ? {key: strongest(row(panel, clamp(query, Q)), 1, 1)[0] ?? choices.key} : {})});
  const toKey = (at: number): Partial<Choices> => ({key: clamp(at, K)});
  const lowest = layer.weights && layer.heads.length > 1 ? -1 : 0;
  const toLayer = (by: number): Partial<Choices> => ({layer: layers[clamp(layers.indexOf(layer) + by, layers.length)].path});
  switch (key) {
    // In the text words run from left to right, in a map those that look run down.
    case 'ArrowRight': return text ? toQuery(choices.query + 1) : toKey(choices.key + 1);
    case 'ArrowLeft': return text ? toQuery(choices.query - 1) : toKey(choices.key - 1);
    case 'ArrowDown': return text ? toKey(choices.key + 1) : toQuery(choices.query + 1);
    case 'ArrowUp': return text ? toKey(choices.key - 1) : toQuery(choices.query - 1);
    case 'Home': return text ? toQuery(0) : toKey(0);
    case 'End': return text ? toQuery(Q - 1) : toKey(K - 1);
    case 'Enter': return {pinned: !choices.pinned};
    case 'Escape': return {pinned: false};
    case '[': return {head: Math.max(lowest, choices.head - 1)};
    case ']': return {head: Math.min(layer.heads.length - 1, choices.head + 1)};
    case '{': return toLayer(-1);
    case '}': return toLayer(1);
    case ',': return {step: Math.max(1, choices.step - 1)};
    case '.': return {step: Math.min(6, choices.step + 1)};
    default: return undefined;
  }
}

function Help() {
  const lines: [string, string][] = [['← → ↑ ↓', 'the word that looks, and the word looked at'], ['Home End', 'first, last'], ['Enter', 'hold a link, or let it go'], ['[ ]', 'head'], ['{ }', 'layer'],
    [', .', 'step of the walk'], ['?', 'this help']];
  return <><h2>Keys</h2><dl>{lines.map(([keys, text]) => <><dt><kbd>{keys}</kbd></dt><dd>{text}</dd></>)}</dl>
    <p class="soft">The address of the page holds what you see: copy it to come back here. The page loads nothing and sends nothing. Another trace opens by Open, or dropped onto the page.</p></>;
}
