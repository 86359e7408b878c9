// SPDX-License-Identifier: Apache-2.0
// A canvas that a view draws on, sharp on every screen, that follows the width it is given; and saving what it shows.
import {useEffect, useLayoutEffect, useRef, useState} from 'preact/hooks';
import {CanvasSurface, SvgSurface, themeOf, type Surface, type Theme} from './surface';

export interface Drawing { width: number; height: number; draw(to: Surface, theme: Theme): void }
export interface Exports { name: string; svg?: () => string; png?: () => Promise<Blob | null>; csv?: () => string }

// What the buttons for saving find; the view on the screen sets it.
export const exportsNow: { current: Exports } = {current: {name: 'view'}};

export function svgOf(drawing: Drawing, theme: Theme): string {
  const surface = new SvgSurface(drawing.width, drawing.height, theme);
  drawing.draw(surface, theme);
  return surface.file();
}

export function paint(canvas: HTMLCanvasElement, drawing: Drawing, theme: Theme, dots: number): void {
  canvas.width = Math.max(1, Math.round(drawing.width * dots));
  canvas.height = Math.max(1, Math.round(drawing.height * dots));
  const context = canvas.getContext('2d')!;
  context.setTransform(dots, 0, 0, dots, 0, 0);
  context.fillStyle = theme.ground;
  context.fillRect(0, 0, drawing.width, drawing.height);
  drawing.draw(new CanvasSurface(context, theme), theme);
}

export function useWidth(): [{ current: HTMLDivElement | null }, number] {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const measure = () => box.current && setWidth(Math.floor(box.current.clientWidth));
    measure();
    const watch = new ResizeObserver(measure);
    if (box.current) watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  return [box, width];
}

// Counts up when colours change.
export function useThemeCount(): number {
  const [count, setCount] = useState(0);
  useEffect(() => {
    const again = () => setCount((n) => n + 1);
    const media = matchMedia('(prefers-color-scheme: dark)'), watch = new MutationObserver(again);
    media.addEventListener('change', again);
    watch.observe(document.documentElement, {attributes: true, attributeFilter: ['data-theme']});
    return () => { media.removeEventListener('change', again); watch.disconnect(); };
  }, []);
  return count;
}

interface FigureProps {
  label: string; make: (width: number) => Drawing; name: string; csv?: () => string; keep?: boolean;
  makeSaved?: (width: number) => Drawing;  // where what is saved has more to it than what is on the screen
  saved?: { current: Exports };  // where what can be saved is told; by default to the page's buttons
  onPoint?: (x: number, y: number, click: boolean, width: number) => void; onLeave?: () => void;
}

export function Figure({label, make, makeSaved = make, name, csv, keep = true, saved = exportsNow, onPoint, onLeave}: FigureProps) {
  const [box, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useThemeCount();
  useLayoutEffect(() => {
    if (!canvas.current || !width) return;
    const drawing = make(width), colours = themeOf(canvas.current);
    canvas.current.style.width = `${drawing.width}px`;
    canvas.current.style.height = `${drawing.height}px`;
    paint(canvas.current, drawing, colours, Math.min(3, devicePixelRatio || 1));
    if (!keep) return;
    saved.current = {
      name, csv, svg: () => svgOf(makeSaved(width), colours),
      png: () => {
        const copy = document.createElement('canvas');
        paint(copy, makeSaved(width), colours, 2);
        return new Promise((done) => copy.toBlob(done));
      },
    };
  }, [width, make, makeSaved, theme]);
  const at = (event: MouseEvent, click: boolean) => {
    const rect = canvas.current!.getBoundingClientRect();
    onPoint?.(event.clientX - rect.left, event.clientY - rect.top, click, width);
  };
  return (
    <div class="figure" ref={box}>
      <canvas ref={canvas} role="img" aria-label={label} class={onPoint ? 'points' : ''}
        onMouseMove={(e) => at(e, false)} onClick={(e) => at(e, true)} onMouseLeave={() => onLeave?.()} />
    </div>
  );
}

export function download(name: string, content: Blob | string, type: string): void {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], {type}));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

export const csvLine = (fields: (string | number)[]) =>
  fields.map((field) => (/[",\n\r]/.test(String(field)) ? `"${String(field).replace(/"/g, '""')}"` : String(field))).join(',') + '\n';
