// SPDX-License-Identifier: Apache-2.0
// A heat map of one panel: rows look, columns are looked at.
import {cividis, inkOn} from './colour';
import type {Drawing} from './figure';
import {kLeftOut, kMasked, kNotCaptured, scaleOf, type ScaleName} from './numbers';
import {cell, row, type Panel} from './panel';
import type {Surface, Theme} from './surface';

export interface MapLayout { left: number; top: number; size: number; rows: number; columns: number }
export interface MapMarks { query: number; key: number; pinned: boolean }

const kLetter = 6.7;  // width of one, about, at 12 px
const clipped = (text: string, most: number) => (text.length > most ? text.slice(0, most - 1) + '…' : text);

export function layoutOf(panel: Panel, width: number): MapLayout {
  const rows = panel.queries.length, columns = panel.keys.length;
  const longest = Math.max(3, ...panel.queries.map((one) => Math.min(14, one.label.length)));
  const highest = Math.max(3, ...panel.keys.map((one) => Math.min(14, one.label.length)));
  const left = Math.ceil(longest * kLetter) + 14;
  const size = Math.max(1.5, Math.min(44, (width - left - 26) / Math.max(1, columns)));
  return {left, top: Math.ceil(highest * kLetter * 0.75) + 20, size, rows, columns};
}

// Which cell is at a place, or undefined.
export function cellAt(layout: MapLayout, x: number, y: number): { query: number; key: number } | undefined {
  const key = Math.floor((x - layout.left) / layout.size), query = Math.floor((y - layout.top) / layout.size);
  const inside = query >= 0 && query < layout.rows && key < layout.columns && key >= (x < layout.left ? -99 : 0);
  return inside ? {query, key: Math.max(-1, key)} : undefined;
}

export function drawCell(to: Surface, theme: Theme, x: number, y: number, size: number, value: number, scaled: number, dim: boolean): void {
  const gap = size > 12 ? 1 : 0;
  if (value === kMasked) return to.hatch(x, y, size - gap, size - gap, 'masked');
  if (value === kNotCaptured) return to.hatch(x, y, size - gap, size - gap, 'missing');
  if (value === kLeftOut) return;
  const colour = cividis(scaled);
  to.rect(x, y, size - gap, size - gap, colour);
  if (size >= 32) to.text(x + (size - gap) / 2, y + (size - gap) / 2, value >= 0.995 ? '1.0' : value.toFixed(2).slice(1), {size: 11, align: 'middle', fill: inkOn(colour)});
  if (dim) to.rect(x, y, size - gap, size - gap, theme.ground + 'b0');
}

export function drawMap(panel: Panel, scaleName: ScaleName, dim: boolean, marks: MapMarks, width: number, caption: string): Drawing {
  const layout = layoutOf(panel, width), {left, top, size} = layout, scale = scaleOf(scaleName);
  const height = top + size * layout.rows + 30, every = Math.max(1, Math.ceil(12 / size));
  return {width, height, draw: (to, theme) => {
    panel.queries.forEach((query, i) => {
      const values = row(panel, i), most = Math.max(...values);
      for (let j = 0; j < layout.columns; ++j)
        drawCell(to, theme, left + j * size, top + i * size, size, values[j], scale(Math.max(0, values[j]), most), dim && panel.dropped[j]);
      if (i % every === 0 || i === marks.query)
        to.text(left - 8, top + (i + 0.5) * size, clipped(query.label, 14), {align: 'end', bold: i === marks.query, fill: i === marks.query ? theme.accent : query.special ? theme.soft : theme.ink});
    });
    panel.keys.forEach((key, j) => {
      if (j % every && j !== marks.key) return;
      to.text(left + (j + 0.5) * size, top - 8, clipped(key.label, 14), {turn: -50, bold: j === marks.key, fill: j === marks.key ? theme.accent : key.special ? theme.soft : theme.ink});
    });
    if (marks.query >= 0) to.frame(left - 1, top + marks.query * size - 1, size * layout.columns + 1, size + 1, theme.accent, 1);
    if (marks.query >= 0 && marks.key >= 0 && cell(panel, marks.query, marks.key) !== kLeftOut)
      to.frame(left + marks.key * size - 0.5, top + marks.query * size - 0.5, size, size, theme.accent, marks.pinned ? 3 : 2);
    to.text(4, height - 10, caption, {size: 11, fill: theme.soft});
  }};
}
