// SPDX-License-Identifier: Apache-2.0
// From numbers to places on an axis, and the round numbers that are written beside it.

export type Kind = 'linear' | 'log';
export interface Axis { kind: Kind; low: number; high: number; ticks: number[]; at(value: number): number }  // at: 0 to 1

export const clamp01 = (x: number) => Math.max(0, Math.min(1, x));

// The smallest of 1, 2, 5, 10, ... and their tenths that needs at most `most` steps.
export function stepOf(extent: number, most: number): number {
  const wanted = extent / most, power = 10 ** Math.floor(Math.log10(wanted));
  return [1, 2, 5].find((x) => x * power >= wanted * (1 - 1e-9))! * power || 10 * power;
}

function linear(low: number, high: number, most: number): Axis {
  if (high - low <= Math.abs(high) * 1e-12) { const by = Math.abs(high) || 1; low -= low ? by / 2 : 0; high += by; }
  const step = stepOf(high - low, most), first = Math.floor(low / step + 1e-9), last = Math.ceil(high / step - 1e-9);
  const ticks = Array.from({length: last - first + 1}, (_, i) => ((first + i) * step === 0 ? 0 : Number(((first + i) * step).toPrecision(12))));
  const from = ticks[0], to = ticks[ticks.length - 1];
  return {kind: 'linear', low: from, high: to, ticks, at: (x) => (x - from) / (to - from)};
}

// Whole powers of ten where there are enough of them, and their doubles and fives where not.
function logarithmic(low: number, high: number, most: number): Axis {
  const round = (x: number, up: boolean) => {
    const power = 10 ** Math.floor(Math.log10(x) + 1e-12), marks = [1, 2, 5, 10].map((m) => m * power);
    return up ? marks.find((m) => m >= x * (1 - 1e-9))! : marks.reverse().find((m) => m <= x * (1 + 1e-9))!;
  };
  let from = round(low, false), to = round(high, true);
  if (from === to) { from = round(from / 2, false); to = round(to * 2, true); }
  const decades = Math.log10(to / from), all = decades <= most / 3;
  const by = Math.max(1, Math.ceil(decades / most)), ticks: number[] = [];
  for (let e = Math.floor(Math.log10(from) + 1e-9); 10 ** e <= to * (1 + 1e-9); ++e)
    for (const m of all ? [1, 2, 5] : e % by ? [] : [1]) {
      const tick = Number((m * 10 ** e).toPrecision(12));
      if (tick >= from * (1 - 1e-9) && tick <= to * (1 + 1e-9)) ticks.push(tick);
    }
  const width = Math.log(to / from);
  return {kind: 'log', low: from, high: to, ticks, at: (x) => Math.log(x / from) / width};
}

// An axis that holds all values, from one round number to another. On a logarithmic one, what is not above 0 has no place.
export function axisOf(kind: Kind, values: number[], most: number): Axis {
  const usable = values.filter((x) => Number.isFinite(x) && (kind === 'linear' || x > 0));
  let low = Infinity, high = -Infinity;
  for (const x of usable) { low = Math.min(low, x); high = Math.max(high, x); }
  if (!usable.length) [low, high] = kind === 'log' ? [1, 10] : [0, 1];
  return kind === 'log' ? logarithmic(low, high, most) : linear(low, high, most);
}

// As short as it can be: 1,500 -> '1500', 2e6 -> '2M', 0.00025 -> '2.5e-4'.
export function tickText(x: number): string {
  const size = Math.abs(x);
  if (size >= 1e15 || (size > 0 && size < 1e-3)) return x.toExponential().replace('e+', 'e');
  for (const [unit, name] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e4, 'k']] as const) if (size >= unit) return Number((x / (name === 'k' ? 1e3 : unit)).toPrecision(6)) + name;
  return String(Number(x.toPrecision(6)));
}

// For people who read a value: four digits.
export function valueText(x: number | null | undefined): string {
  if (x === null || x === undefined || !Number.isFinite(x)) return '–';
  const size = Math.abs(x);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) return Number(x.toPrecision(4)).toExponential().replace('e+', 'e');
  return Number.isInteger(x) ? String(x) : String(Number(x.toPrecision(4)));
}
