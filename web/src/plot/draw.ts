// SPDX-License-Identifier: Apache-2.0
// A plot on a surface: lines with their ranges, or bars and dots beside the names of categories.
import type {Drawing} from '../figure';
import {tickText, valueText} from '../scale';
import type {Place, Surface, Theme} from '../surface';
import {axesOf, runs, withoutPlace, type Plot, type Series} from './report';

export const kLetter = 6.4;  // about as wide as a letter at 12 px
const kRow = 17;  // as high as a bar with its gap
const kDash = [[], [7, 4], [2, 3], [9, 3, 2, 3]];  // series 9 to 16 are dashed, and so on
export const kMostDots = 60;  // of a series: more are a line alone

export interface Look { colour: string; dash: number[] }
export const lookOf = (theme: Theme, i: number): Look => ({colour: theme.series[i % 8], dash: kDash[Math.floor(i / 8) % kDash.length]});

// Where the numbers are on the picture, for who points at it.
export interface Layout { left: number; top: number; width: number; height: number; rowOf?: (y: number) => number; at: (x: number) => number }

const shorten = (text: string, most: number) => (text.length > most ? text.slice(0, most - 1) + '…' : text);

export interface Shown { plot: Plot; hidden: Set<number>; at: number | undefined }  // at: an x, or the index of a category

export function drawingOf(shown: Shown, width: number): Drawing & { layout: Layout } {
  return shown.plot.categories?.length ? categorical(shown, width) : continuous(shown, width);
}

export const visible = ({plot, hidden}: Shown): [Series, number][] => plot.series.map((one, i): [Series, number] => [one, i]).filter(([, i]) => !hidden.has(i));

function continuous(shown: Shown, width: number): Drawing & { layout: Layout } {
  const {plot} = shown, series = visible(shown), narrow = width < 500;
  const {x, y} = axesOf(plot, series.map(([one]) => one), narrow ? [4, 5] : [8, 6]);
  const left = Math.max(...y.ticks.map((tick) => tickText(tick).length)) * 7 + 14, top = 26, bottom = 42, right = 18;
  const height = narrow ? 260 : 340, w = width - left - right, h = height - top - bottom;
  const px = (value: number) => left + w * x.at(value), py = (value: number) => top + h * (1 - y.at(value));
  const draw = (to: Surface, theme: Theme) => {
    for (const tick of y.ticks) {
      to.rect(left, Math.round(py(tick)), w, 1, theme.line);
      to.text(left - 7, py(tick), tickText(tick), {align: 'end', fill: theme.soft});
    }
    for (const tick of x.ticks) {
      to.rect(Math.round(px(tick)), top + h, 1, 5, theme.soft);
      to.text(px(tick), top + h + 14, tickText(tick), {align: 'middle', fill: theme.soft});
    }
    to.text(2, 9, plot.y.label + (y.kind === 'log' ? ' (logarithmic)' : ''), {fill: theme.soft});
    to.text(left + w, height - 8, plot.x.label + (x.kind === 'log' ? ' (logarithmic)' : ''), {align: 'end', fill: theme.soft});
    if (!series.some(([one]) => one.points.length)) to.text(left + w / 2, top + h / 2, 'nothing was measured yet', {align: 'middle', fill: theme.soft});
    for (const [one, i] of series)
      for (const run of runs(one.points, x, y)) {
        const floor = (value: number) => (y.kind === 'log' ? Math.max(value, y.low) : value);
        const upper = run.filter((p) => p[3] !== undefined).map((p): Place => [px(p[0]), py(floor(p[3]!))]);
        const lower = run.filter((p) => p[2] !== undefined).map((p): Place => [px(p[0]), py(floor(p[2]!))]);
        if (upper.length > 1) to.area([...upper, ...lower.reverse()], lookOf(theme, i).colour, 0.18);
        else if (upper.length) to.line([upper[0], lower[0]], lookOf(theme, i).colour, 1.5);
      }
    for (const [one, i] of series) {
      const {colour, dash} = lookOf(theme, i);
      for (const run of runs(one.points, x, y)) {
        const places = run.map((p): Place => [px(p[0]), py(p[1]!)]);
        if (places.length > 1) to.line(places, colour, 2, dash);
        if (one.points.length <= kMostDots || places.length === 1) for (const [a, b] of places) to.dot(a, b, 3, colour);
      }
    }
    if (shown.at === undefined) return;
    to.rect(Math.round(px(shown.at)), top, 1, h, theme.accent);
    for (const [one, i] of series)
      for (const run of runs(one.points, x, y))
        for (const p of run) if (p[0] === shown.at) { to.dot(px(p[0]), py(p[1]!), 6, theme.ground); to.dot(px(p[0]), py(p[1]!), 4.5, lookOf(theme, i).colour); }
  };
  return {width, height, draw, layout: {left, top, width: w, height: h, at: px}};
}

// Names on the left, one row for each series of each; where the page is narrow, names stand above their rows.
function categorical(shown: Shown, width: number): Drawing & { layout: Layout } {
  const {plot} = shown, series = visible(shown), names = plot.categories!, narrow = width < 560;
  const axis = axesOf(plot, series.map(([one]) => one), [1, narrow ? 4 : 7]).y;
  const longest = Math.max(...names.map((name) => name.length)) * kLetter;
  const left = narrow ? 14 : Math.min(longest + 14, width * 0.38), right = 62, top = 6, w = width - left - right;
  const perName = Math.max(1, series.length) * kRow + (narrow ? 20 : 0) + 9, h = perName * names.length, height = top + h + 44;
  const px = (value: number) => left + w * axis.at(value);
  const draw = (to: Surface, theme: Theme) => {
    if (shown.at !== undefined) to.rect(0, top + shown.at * perName, width, perName, theme.line);
    for (const tick of axis.ticks) {
      to.rect(Math.round(px(tick)), top, 1, h, theme.line);
      to.text(px(tick), top + h + 12, tickText(tick), {align: 'middle', fill: theme.soft});
    }
    to.text(left + w, height - 9, plot.y.label + (axis.kind === 'log' ? ' (logarithmic)' : ''), {align: 'end', fill: theme.soft});
    const zero = axis.kind === 'linear' && axis.low <= 0 && axis.high >= 0 ? px(0) : px(axis.low);
    names.forEach((name, c) => {
      const y0 = top + c * perName + 4;
      to.text(narrow ? 2 : left - 10, narrow ? y0 + 9 : y0 + (perName - 9) / 2, shorten(name, Math.floor((narrow ? width : left) / kLetter) - 1), {align: narrow ? 'start' : 'end'});
      series.forEach(([one, i], row) => {
        const point = one.points.find(([x]) => x === c), y = y0 + (narrow ? 20 : 0) + row * kRow, {colour} = lookOf(theme, i), middle = y + (kRow - 3) / 2;
        const value = point?.[1];
        if (value === undefined || value === null || (axis.kind === 'log' && value <= 0)) {
          to.text(zero + 6, middle, value === undefined || value === null ? 'not measured' : `${valueText(value)}, not on this axis`, {size: 11, fill: theme.soft});
          return;
        }
        const ends = [point![2], point![3]].filter((x): x is number => x !== undefined).map((x) => px(axis.kind === 'log' ? Math.max(x, axis.low) : x));
        if (plot.marks === 'bars') to.rect(Math.min(zero, px(value)), y, Math.max(1, Math.abs(px(value) - zero)), kRow - 3, colour);
        if (ends.length) {
          const stroke = plot.marks === 'bars' ? theme.ink : colour;
          to.line([[ends[0], middle], [ends[1], middle]], stroke, 1.5);
          for (const end of ends) to.line([[end, middle - 4], [end, middle + 4]], stroke, 1.5);
        }
        if (plot.marks === 'dots') to.dot(px(value), middle, 5, colour);
        to.text(Math.max(px(value), ...ends) + 8, middle, valueText(value), {size: 11, fill: theme.soft});
      });
    });
    to.rect(Math.round(zero), top, 1, h, theme.soft);
  };
  const rowOf = (y: number) => Math.floor((y - top) / perName);
  return {width, height, draw, layout: {left, top, width: w, height: h, rowOf, at: px}};
}

// What has to be said under a plot, beside its note.
export function remark({plot, hidden}: Shown): string {
  const lost = withoutPlace(plot, plot.series.filter((_, i) => !hidden.has(i)));
  return lost ? `${lost} ${lost === 1 ? 'value is' : 'values are'} 0 or less, and not on the logarithmic axis; the table has them.` : '';
}
