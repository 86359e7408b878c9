// SPDX-License-Identifier: Apache-2.0
// The words themselves: one looks, the others light up.
import {useLayoutEffect, useRef, useState} from 'preact/hooks';
import {cividis, inkOn} from '../colour';
import type {View} from '../context';
import {exportsNow, paint, svgOf, useThemeCount, useWidth, type Drawing} from '../figure';
import {kLeftOut, kMasked, kNotCaptured, scaleOf} from '../numbers';
import {row, strongest} from '../panel';
import {BadRow, caption, Empty, Legend, Note, Removed, said, Word} from '../parts';
import {themeOf} from '../surface';
import {stepsByRow, writes} from '../words';
import {panelCsv} from './map';

const kWindow = 80;  // words at a time of a long text
interface Link { x0: number; y0: number; x1: number; y1: number; weight: number; faint: boolean }

export function TextView(view: View) {
  const {panel, choices, hover} = view;
  const [area, width] = useWidth();
  const [links, setLinks] = useState<Link[]>([]);
  const root = useRef<HTMLDivElement>(null);
  const theme = useThemeCount();
  const query = Math.max(0, Math.min(hover?.query ?? choices.query, (panel?.queries.length ?? 1) - 1));
  useLayoutEffect(() => {
    if (!root.current || !panel) return;
    setLinks(measured(root.current, panel, query));
    exportsNow.current = {
      name: 'text', csv: () => panelCsv(panel),
      svg: () => svgOf(sceneOf(root.current!, measured(root.current!, panel, query), caption(view, panel)), themeOf(root.current!)),
      png: () => {
        const copy = document.createElement('canvas');
        paint(copy, sceneOf(root.current!, measured(root.current!, panel, query), caption(view, panel)), themeOf(root.current!), 2);
        return new Promise((done) => copy.toBlob(done));
      },
    };
  }, [panel, query, width, choices.special, choices.scale, theme]);
  if (!panel) return <Empty>This model has no attention. The view States has what it remembers.</Empty>;
  const cross = panel.layer.role === 'cross', scale = scaleOf(choices.scale), values = row(panel, query), most = Math.max(...values);
  const windowOf = (n: number, at: number) => {
    const begin = n <= kWindow ? 0 : Math.max(0, Math.min(n - kWindow, at - kWindow / 2));
    return [begin, Math.min(n, begin + kWindow)];
  };
  const best = strongest(values, 1, 8);
  const [q0, q1] = windowOf(panel.queries.length, choices.query), [k0, k1] = windowOf(panel.keys.length, best[0] ?? 0);
  const steps = stepsByRow(view.trace, panel.layer.q.seq), writing = writes(view.trace, panel.layer.q.seq);
  return (
    <div class="with-note">
      <div ref={area}>
        <Legend scale={choices.scale} />
        <div class="text" ref={root} onMouseLeave={() => view.setHover(undefined)}>
          <svg class="links" aria-hidden="true">
            {links.map((link) => {
              const m = (link.y0 + link.y1) / 2;
              return <path class={link.faint ? 'faint' : 'strong'} d={`M${link.x0} ${link.y0}C${link.x0} ${m} ${link.x1} ${m} ${link.x1} ${link.y1}`}
                stroke-width={link.faint ? 1 : 1 + 5 * link.weight} />;
            })}
          </svg>
          <h3 class="row-name">{cross ? 'What it read: looked at' : 'Looked at'}{(k0 > 0 || k1 < panel.keys.length) && ` (words ${k0 + 1} to ${k1} of ${panel.keys.length})`}</h3>
          <p class="words keys">
            {panel.keys.slice(k0, k1).map((key, i) => {
              const j = k0 + i, value = values[j];
              const colour = value >= 0 ? cividis(scale(value, most)) : undefined;
              const kind = value === kMasked ? 'masked' : value === kNotCaptured ? 'missing' : value === kLeftOut ? 'out' : '';
              return (
                <button type="button" data-key={j} class={`chip key ${kind} ${choices.special === 'dim' && panel.dropped[j] ? 'dim' : ''} ${j === choices.key ? 'chosen' : ''}`}
                  style={colour ? {background: colour, color: inkOn(colour)} : {}} tabIndex={-1} title={key.detail}
                  onClick={() => view.set({key: j, pinned: true})}>
                  <bdi>{key.label}</bdi><small>{value >= 0 ? value.toFixed(2) : kind === 'out' ? 'left out' : kind === 'masked' ? 'masked' : '–'}</small>
                </button>
              );
            })}
          </p>
          <p class="words queries">
            {panel.queries.slice(q0, q1).map((unit, i) => {
              const at = q0 + i, step = steps.get(panel.layer.q.begin + unit.index[unit.index.length - 1]);
              return (
                <button type="button" data-query={at} class={`chip query ${at === query ? 'now' : ''} ${at === choices.query && choices.pinned ? 'pinned' : ''} ${unit.special ? 'special' : ''}`}
                  aria-pressed={at === choices.query} title={unit.detail}
                  onMouseEnter={() => view.setHover({query: at, key: choices.key})} onFocus={() => view.setHover(undefined)}
                  onClick={() => { view.setHover(undefined); view.set({query: at, key: strongest(row(panel, at), 1, 1)[0] ?? choices.key, pinned: true}); }}>
                  <bdi>{unit.label}</bdi>
                  {step && !writing && <small><bdi>{step.piece.replace(/▁/g, '')}</bdi></small>}
                </button>
              );
            })}
          </p>
          <h3 class="row-name below">{cross ? 'What it wrote: point at a word' : writing ? 'What it wrote: each word was chosen while looking' : 'Point at a word'}{(q0 > 0 || q1 < panel.queries.length) && ` (words ${q0 + 1} to ${q1} of ${panel.queries.length})`}</h3>
        </div>
        <p class="readout"><output>{said(panel, query, hover ? best[0] ?? choices.key : choices.key)}</output></p>
        <Removed panel={panel} query={query} />
        <BadRow panel={panel} query={query} />
      </div>
      <Note title="What does a word look at?">
        <p>{cross
          ? <>When the model chose <Word>{panel.queries[query]?.label ?? '?'}</Word>, it looked back at the text that it had read. It shared out one unit of attention:</>
          : <>While the model worked on <Word>{panel.queries[query]?.label ?? '?'}</Word>, this head shared out one unit of attention among the words it may see:</>}</p>
        <ol class="top">{best.slice(0, 4).filter((j, i) => i === 0 || values[j] >= 0.005).map((j) => <li><Word>{panel.keys[j].label}</Word> <b>{values[j].toFixed(2)}</b></li>)}</ol>
        <p><b>Point</b> at a word to see its links, <b>click</b> to hold it. The line's width is the weight; thin lines are the strongest link of every other word.</p>
        {(view.trace.raw.effects?.length ?? 0) > 0 && <p>Did it <b>matter</b> what it looked at? <button type="button" class="link" onClick={() => view.set({view: 'effect', why: whyOf(view, query)})}>What each word was worth</button> has been measured.</p>}
        <p>A model has many <b>heads</b> that look in their own ways: the keys <kbd>[</kbd> <kbd>]</kbd> go through them, <kbd>{'{'}</kbd> <kbd>{'}'}</kbd> through layers.</p>
        {panel.keys.some((key) => key.special) && <p><Word>{panel.keys.find((key) => key.special)!.label}</Word> is no word: it is a mark of the model's own, and may be looked at as words are.</p>}
        {panel.layer.feed && <p>The query is the decoder's state {panel.layer.feed.at === 'prev' ? 'before' : 'after'} the word was read.</p>}
      </Note>
    </div>
  );
}

// The effect of the row that is looked at, or the one that the view chooses.
function whyOf({trace, panel}: View, query: number): number {
  const rows = panel!.queries[query]?.index.map((t) => panel!.layer.q.begin + t) ?? [];
  return (trace.raw.effects ?? []).findIndex((one) => one.seq === panel!.layer.q.seq && one.against === undefined && rows.includes(one.row));
}

function measured(root: HTMLElement, panel: NonNullable<View['panel']>, query: number): Link[] {
  const frame = root.getBoundingClientRect();
  const box = (selector: string) => {
    const found = root.querySelector(selector)?.getBoundingClientRect();
    return found && {x: (found.left + found.right) / 2 - frame.left, top: found.top - frame.top, bottom: found.bottom - frame.top};
  };
  const links: Link[] = [];
  const add = (i: number, j: number, weight: number, faint: boolean) => {
    const from = box(`[data-query="${i}"]`), to = box(`[data-key="${j}"]`);
    if (from && to) links.push({x0: from.x, y0: from.top, x1: to.x, y1: to.bottom, weight, faint});
  };
  if (panel.queries.length <= 40)
    panel.queries.forEach((_, i) => { if (i !== query) for (const j of strongest(row(panel, i), 1, 1)) add(i, j, row(panel, i)[j], true); });
  const values = row(panel, query);
  for (const j of strongest(values, 0.85, 5)) add(query, j, values[j], false);
  return links;
}

// The words where they are on the screen, as a drawing that can be saved.
function sceneOf(root: HTMLElement, links: Link[], text: string): Drawing {
  const frame = root.getBoundingClientRect();
  return {width: frame.width, height: frame.height + 24, draw: (to, theme) => {
    for (const link of links) to.curve(link.x0, link.y0, link.x1, link.y1, link.faint ? theme.soft : theme.accent, link.faint ? 1 : 1 + 5 * link.weight, link.faint ? 0.35 : 0.8);
    root.querySelectorAll<HTMLElement>('.chip').forEach((chip) => {
      const r = chip.getBoundingClientRect(), x = r.left - frame.left, y = r.top - frame.top;
      const key = chip.classList.contains('key'), small = chip.querySelector('small')?.textContent;
      const fill = chip.style.background ? getComputedStyle(chip).backgroundColor : theme.ground, ink = chip.style.color ? getComputedStyle(chip).color : theme.ink;
      to.rect(x, y, r.width, r.height, fill);
      if (!key) to.frame(x, y, r.width, r.height, chip.classList.contains('now') ? theme.accent : theme.line, chip.classList.contains('now') ? 2 : 1);
      to.text(x + r.width / 2, y + (small ? r.height * 0.36 : r.height / 2), chip.querySelector('bdi')?.textContent ?? '', {align: 'middle', size: 15, fill: ink});
      if (small) to.text(x + r.width / 2, y + r.height * 0.76, small, {align: 'middle', size: 11, fill: ink});
    });
    to.text(4, frame.height + 12, text, {size: 11, fill: theme.soft});
  }};
}
