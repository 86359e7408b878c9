// SPDX-License-Identifier: Apache-2.0
// Small pieces that views share.
import type {ComponentChildren} from 'preact';
import {cividis, signed} from './colour';
import type {View} from './context';
import {Figure, type Drawing} from './figure';
import {kLeftOut, kMasked, kNotCaptured, kScales, number, rankOf, scaleOf, type ScaleName} from './numbers';
import {cell, headName, row, rowError, type Panel} from './panel';

export function Note({title, children}: { title: string; children: ComponentChildren }) {
  return <aside class="note"><h3>{title}</h3>{children}</aside>;
}

export const Word = ({children}: { children: string }) => <bdi class="word">{children}</bdi>;

export function Empty({children}: { children: ComponentChildren }) { return <p class="empty">{children}</p>; }

// 'sat to cat 0.351, rank 2 of 4'
export function said(panel: Panel, query: number, key: number): string {
  const from = panel.queries[query]?.label ?? '?', to = panel.keys[key]?.label ?? '?', value = cell(panel, query, key);
  if (value === kMasked) return `${from} to ${to}: masked, it may not look there`;
  if (value === kNotCaptured) return `${from} to ${to}: not captured`;
  if (value === kLeftOut) return `${from} to ${to}: left out`;
  const [rank, of] = rankOf(row(panel, query), key);
  return `${from} to ${to} ${number(value)}, rank ${rank} of ${of}${panel.layer.weights ? '' : ' that were captured'}`;
}

const kStops = 64;
export function Legend({scale, kinds = true}: { scale: ScaleName; kinds?: boolean }) {
  const map = scaleOf(scale);
  const make = (width: number): Drawing => ({width, height: 30, draw: (to, theme) => {
    const w = Math.min(220, width - 16) / kStops;
    for (let i = 0; i < kStops; ++i) to.rect(8 + i * w, 2, w + 0.5, 10, cividis(i / (kStops - 1)));
    for (const tick of map.ticks) {
      const x = 8 + kStops * w * map(tick, 1);
      to.rect(x - 0.5, 12, 1, 3, theme.soft);
      to.text(x, 22, scale === 'row' ? `${tick * 100}%` : String(tick), {size: 10, align: 'middle', fill: theme.soft});
    }
  }});
  return (
    <div class="legend">
      <Figure label={`colours of weights: ${kScales[scale]}`} make={make} name="legend" keep={false} />
      <span class="soft">weight, {kScales[scale]}{scale === 'row' && <b class="badge"> rows are not comparable</b>}</span>
      {kinds && <span class="kinds"><i class="sw masked" />masked <i class="sw zero" />zero <i class="sw missing" />not captured</span>}
    </div>
  );
}

// Signed numbers as cells, with what cannot be seen from colours in words.
export function Strip({label, values, max}: { label: string; values: ArrayLike<number>; max: number }) {
  const n = values.length;
  let low = Infinity, high = -Infinity, square = 0;
  for (let i = 0; i < n; ++i) { low = Math.min(low, values[i]); high = Math.max(high, values[i]); square += values[i] * values[i]; }
  const make = (room: number): Drawing => ({width: Math.min(room, n * 16), height: 20, draw: (to) => {
    const w = Math.min(16, room / n);
    for (let i = 0; i < n; ++i) to.rect(i * w, 1, w - (w > 5 ? 1 : 0), 18, signed(max > 0 ? values[i] / max : 0));
  }});
  return (
    <div class="strip">
      <span class="strip-name">{label}</span>
      <Figure label={`${label}: ${n} numbers`} make={make} name="strip" keep={false} />
      <span class="soft">{n} numbers, {number(low, 2)} to {number(high, 2)}, norm {number(Math.sqrt(square), 2)}</span>
    </div>
  );
}

export function Bar({value, max = 1}: { value: number; max?: number }) {
  const share = max > 0 ? Math.max(0, Math.min(1, value / max)) : 0;
  return <span class="bar"><span style={{width: `${share * 100}%`}} /></span>;
}

export function Removed({panel, query}: { panel: Panel; query: number }) {
  if (!panel.removed) return null;
  const mean = panel.removed.reduce((a, b) => a + b, 0) / Math.max(1, panel.removed.length), most = Math.max(0, ...panel.removed);
  return (
    <p class="warn">Left out: {panel.keys.filter((_, j) => panel.dropped[j]).map((one) => one.label).join(' ') || 'nothing'}. They had {number(panel.removed[query] ?? 0)} of
      this row, {number(mean)} of rows on average and {number(most)} at most; the rest of each row was scaled up to 1.</p>
  );
}

// Rows that were captured whole share out exactly 1. One that does not is damaged, or was made up.
export function BadRow({panel, query}: { panel: Panel; query: number }) {
  const off = rowError(panel, query);
  if (off === undefined) return null;
  return <p class="check bad" role="alert"><b>This row is not a row of weights.</b> It sums to {number(1 + off, 4)}, expected 1.</p>;
}

// For all that is drawn: what it is of.
export function caption(view: View, panel: Panel): string {
  return `${panel.layer.path}, ${headName(panel.layer, panel.head)}; ${kScales[view.choices.scale]}`;
}
