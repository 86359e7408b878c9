// SPDX-License-Identifier: Apache-2.0
// A report as heed/page/report.cc writes it, and what is computed for its plots.
import {axisOf, type Axis, type Kind} from '../scale';

export type Point = [x: number, y: number | null, low?: number, high?: number];
export interface Series { name: string; points: Point[] }
export interface AxisText { label: string; scale?: 'log'; low?: number; high?: number }
export interface Plot {
  title: string; marks: 'lines' | 'bars' | 'dots'; x: AxisText; y: AxisText; categories?: string[]; note?: string; series: Series[];
}
export interface Report {
  title: string; paragraphs: string[]; verdicts: { outcome: 'confirmed' | 'refuted' | 'open'; text: string }[];
  plots: Plot[]; tables: { title: string; columns: string[]; rows: string[][] }[]; footer: string;
}

export function readReport(text: string): Report {
  const raw = JSON.parse(text) as { format?: string; version?: string };
  if (raw?.format !== 'heed-report') throw new Error(`format is '${String(raw?.format)}', expected 'heed-report'`);
  if (!/^1\.\d+$/.test(raw.version ?? '')) throw new Error(`version is '${raw.version}', expected 1.x: it was written by another heed`);
  return raw as unknown as Report;
}

const kindOf = (axis: AxisText): Kind => axis.scale ?? 'linear';
const known = (...values: (number | null | undefined)[]) => values.filter((x): x is number => x !== undefined && x !== null);

export function axesOf(plot: Plot, series: Series[], ticks: [number, number]): { x: Axis; y: Axis } {
  const points = series.flatMap((one) => one.points);
  const ys = points.flatMap(([, y, low, high]) => known(y, low, high));
  return {
    x: axisOf(kindOf(plot.x), [...points.map(([x]) => x), ...known(plot.x.low, plot.x.high)], ticks[0]),
    y: axisOf(kindOf(plot.y), [...ys, ...known(plot.y.low, plot.y.high), ...(plot.marks === 'bars' ? [0] : [])], ticks[1]),
  };
}

// Points that a logarithmic axis has no place for.
export function withoutPlace(plot: Plot, series: Series[]): number {
  const lost = (axis: AxisText, value: number | null) => axis.scale === 'log' && value !== null && value <= 0;
  return series.reduce((n, one) => n + one.points.filter(([x, y]) => (!plot.categories && lost(plot.x, x)) || lost(plot.y, y)).length, 0);
}

// Runs of points that have a place: a line has a gap where nothing was measured.
export function runs(points: Point[], x: Axis, y: Axis): Point[][] {
  const out: Point[][] = [[]];
  for (const point of points) {
    const placed = point[1] !== null && (x.kind === 'linear' || point[0] > 0) && (y.kind === 'linear' || point[1] > 0);
    if (placed) out[out.length - 1].push(point); else if (out[out.length - 1].length) out.push([]);
  }
  return out.filter((run) => run.length);
}

// All x of the series, rising, each once.
export const placesOf = (series: Series[]) => [...new Set(series.flatMap((one) => one.points.map(([x]) => x)))].sort((a, b) => a - b);
