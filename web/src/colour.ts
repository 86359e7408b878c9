// SPDX-License-Identifier: Apache-2.0
// The two ramps: cividis for what is 0 or more, PuOr for signed numbers. The tables are made when the page is built.
declare const CIVIDIS: string;
declare const PUOR: string;

const at = (table: string, x: number) => {
  const i = Math.max(0, Math.min(255, Math.round(x * 255)));
  return '#' + table.slice(6 * i, 6 * i + 6);
};
export const cividis = (x: number) => at(CIVIDIS, x);
export const signed = (x: number) => at(PUOR, (1 - x) / 2);  // -1 purple... 1 orange

export function rgb(colour: string): [number, number, number] {
  return [parseInt(colour.slice(1, 3), 16), parseInt(colour.slice(3, 5), 16), parseInt(colour.slice(5, 7), 16)];
}

// Black or white, whichever reads better: the one with the higher contrast of WCAG.
export function inkOn(colour: string): string {
  const [r, g, b] = rgb(colour).map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  const light = 0.2126 * r + 0.7152 * g + 0.0722 * b;
  return 1.05 / (light + 0.05) > (light + 0.05) / 0.05 ? '#ffffff' : '#000000';
}
