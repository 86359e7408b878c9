// SPDX-License-Identifier: Apache-2.0
// Something to draw on: a canvas, or an SVG file. A view draws itself once, for the screen and for what is saved.

export interface TextStyle { size?: number; align?: 'start' | 'middle' | 'end'; fill?: string; turn?: number; bold?: boolean }
export interface Surface {
  rect(x: number, y: number, w: number, h: number, fill: string): void;
  frame(x: number, y: number, w: number, h: number, stroke: string, width: number): void;
  hatch(x: number, y: number, w: number, h: number, kind: 'masked' | 'missing'): void;
  curve(x0: number, y0: number, x1: number, y1: number, stroke: string, width: number, opacity: number): void;
  text(x: number, y: number, text: string, style?: TextStyle): void;
  line(points: Place[], stroke: string, width: number, dash?: number[]): void;
  area(points: Place[], fill: string, opacity: number): void;
  dot(x: number, y: number, radius: number, fill: string): void;
}
export type Place = readonly [number, number];
export interface Theme { ground: string; ink: string; soft: string; line: string; accent: string; hatch: string; series: string[] }

const kSeries = [1, 2, 3, 4, 5, 6, 7, 8];

export function themeOf(element: Element): Theme {
  const style = getComputedStyle(element), read = (name: string) => style.getPropertyValue(name).trim();
  return {ground: read('--ground'), ink: read('--ink'), soft: read('--soft'), line: read('--line'), accent: read('--accent'), hatch: read('--hatch'), series: kSeries.map((i) => read(`--series-${i}`))};
}
const kFont = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif';

export class CanvasSurface implements Surface {
  constructor(private c: CanvasRenderingContext2D, private theme: Theme) {}
  rect(x: number, y: number, w: number, h: number, fill: string) { this.c.fillStyle = fill; this.c.fillRect(x, y, w, h); }
  frame(x: number, y: number, w: number, h: number, stroke: string, width: number) {
    this.c.strokeStyle = stroke; this.c.lineWidth = width; this.c.strokeRect(x, y, w, h);
  }
  // Masked: strokes one way. Missing: dots. Both are no colour of the ramp.
  hatch(x: number, y: number, w: number, h: number, kind: 'masked' | 'missing') {
    const c = this.c;
    c.save();
    c.beginPath(); c.rect(x, y, w, h); c.clip();
    c.fillStyle = this.theme.ground; c.fillRect(x, y, w, h);
    c.strokeStyle = c.fillStyle = this.theme.hatch; c.lineWidth = 1;
    if (kind === 'masked') {
      c.beginPath();
      for (let i = -h; i < w; i += 5) { c.moveTo(x + i, y + h); c.lineTo(x + i + h, y); }
      c.stroke();
    } else {
      for (let i = 2; i < w; i += 5) for (let j = 2; j < h; j += 5) c.fillRect(x + i, y + j, 1.5, 1.5);
    }
    c.restore();
  }
  curve(x0: number, y0: number, x1: number, y1: number, stroke: string, width: number, opacity: number) {
    const c = this.c, middle = (y0 + y1) / 2;
    c.save(); c.globalAlpha = opacity; c.strokeStyle = stroke; c.lineWidth = width; c.lineCap = 'round';
    c.beginPath(); c.moveTo(x0, y0); c.bezierCurveTo(x0, middle, x1, middle, x1, y1); c.stroke(); c.restore();
  }
  text(x: number, y: number, text: string, style: TextStyle = {}) {
    const c = this.c;
    c.save();
    c.translate(x, y);
    if (style.turn) c.rotate((style.turn * Math.PI) / 180);
    c.font = `${style.bold ? '600 ' : ''}${style.size ?? 12}px ${kFont}`;
    c.textAlign = style.align === 'middle' ? 'center' : style.align ?? 'start';
    c.textBaseline = 'middle';
    c.fillStyle = style.fill ?? this.theme.ink;
    c.fillText(text, 0, 0);
    c.restore();
  }
  private path(points: Place[]) { this.c.beginPath(); points.forEach(([x, y], i) => (i ? this.c.lineTo(x, y) : this.c.moveTo(x, y))); }
  line(points: Place[], stroke: string, width: number, dash: number[] = []) {
    const c = this.c;
    c.save(); c.strokeStyle = stroke; c.lineWidth = width; c.lineJoin = 'round'; c.setLineDash(dash); this.path(points); c.stroke(); c.restore();
  }
  area(points: Place[], fill: string, opacity: number) {
    const c = this.c;
    c.save(); c.globalAlpha = opacity; c.fillStyle = fill; this.path(points); c.fill(); c.restore();
  }
  dot(x: number, y: number, radius: number, fill: string) { this.c.fillStyle = fill; this.c.beginPath(); this.c.arc(x, y, radius, 0, 2 * Math.PI); this.c.fill(); }
}

export const escaped = (text: string) =>
  text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, '\ufffd');

export class SvgSurface implements Surface {
  private parts: string[] = [];
  constructor(private width: number, private height: number, private theme: Theme) {}
  private put(text: string) { this.parts.push(text); }
  private n(x: number) { return String(Math.round(x * 100) / 100); }
  private box(x: number, y: number, w: number, h: number) { return `x="${this.n(x)}" y="${this.n(y)}" width="${this.n(w)}" height="${this.n(h)}"`; }
  rect(x: number, y: number, w: number, h: number, fill: string) { this.put(`<rect ${this.box(x, y, w, h)} fill="${escaped(fill)}"/>`); }
  frame(x: number, y: number, w: number, h: number, stroke: string, width: number) {
    this.put(`<rect ${this.box(x, y, w, h)} fill="none" stroke="${escaped(stroke)}" stroke-width="${width}"/>`);
  }
  hatch(x: number, y: number, w: number, h: number, kind: 'masked' | 'missing') { this.put(`<rect ${this.box(x, y, w, h)} fill="url(#${kind})"/>`); }
  curve(x0: number, y0: number, x1: number, y1: number, stroke: string, width: number, opacity: number) {
    const [a, b, c, d, m] = [x0, y0, x1, y1, (y0 + y1) / 2].map((x) => this.n(x));
    this.put(`<path d="M${a} ${b}C${a} ${m} ${c} ${m} ${c} ${d}" fill="none" stroke="${escaped(stroke)}" stroke-width="${this.n(width)}" stroke-opacity="${this.n(opacity)}"/>`);
  }
  text(x: number, y: number, text: string, style: TextStyle = {}) {
    const turn = style.turn ? ` transform="rotate(${style.turn} ${this.n(x)} ${this.n(y)})"` : '';
    this.put(`<text x="${this.n(x)}" y="${this.n(y)}" dominant-baseline="central" text-anchor="${style.align ?? 'start'}" font-size="${style.size ?? 12}"${
      style.bold ? ' font-weight="600"' : ''} fill="${escaped(style.fill ?? this.theme.ink)}"${turn}>${escaped(text)}</text>`);
  }
  private places(points: Place[]) { return points.map(([x, y]) => `${this.n(x)},${this.n(y)}`).join(' '); }
  line(points: Place[], stroke: string, width: number, dash: number[] = []) {
    this.put(`<polyline points="${this.places(points)}" fill="none" stroke="${escaped(stroke)}" stroke-width="${width}"${dash.length ? ` stroke-dasharray="${dash.join(' ')}"` : ''}/>`);
  }
  area(points: Place[], fill: string, opacity: number) { this.put(`<polygon points="${this.places(points)}" fill="${escaped(fill)}" fill-opacity="${opacity}"/>`); }
  dot(x: number, y: number, radius: number, fill: string) { this.put(`<circle cx="${this.n(x)}" cy="${this.n(y)}" r="${radius}" fill="${escaped(fill)}"/>`); }
  file(): string {
    const {ground, hatch} = this.theme;
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${this.n(this.width)}" height="${this.n(this.height)}" viewBox="0 0 ${this.n(this.width)} ${this.n(this.height)}" font-family="${escaped(kFont)}">
<defs><pattern id="masked" width="5" height="5" patternUnits="userSpaceOnUse"><rect width="5" height="5" fill="${escaped(ground)}"/><path d="M0 5L5 0" stroke="${escaped(hatch)}"/></pattern>
<pattern id="missing" width="5" height="5" patternUnits="userSpaceOnUse"><rect width="5" height="5" fill="${escaped(ground)}"/><rect x="2" y="2" width="1.5" height="1.5" fill="${escaped(hatch)}"/></pattern></defs>
<rect width="100%" height="100%" fill="${escaped(ground)}"/>
${this.parts.join('\n')}
</svg>
`;
  }
}
