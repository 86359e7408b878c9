// SPDX-License-Identifier: Apache-2.0
// A plot as it is saved: with its title and the names of its series above it, which the page has as text and buttons.
import type {Drawing} from '../figure';
import type {Place, Surface, TextStyle, Theme} from '../surface';
import {drawingOf, kLetter, lookOf, visible, type Shown} from './draw';

const kMark = 22, kGap = 18, kRow = 20, kTitle = 28;  // px: of a series' mark, between two names, of their rows, of the title

// The same surface, lower down.
function lower(to: Surface, by: number): Surface {
  const down = (places: Place[]) => places.map(([x, y]): Place => [x, y + by]);
  return {
    rect: (x, y, w, h, fill) => to.rect(x, y + by, w, h, fill),
    frame: (x, y, w, h, stroke, width) => to.frame(x, y + by, w, h, stroke, width),
    hatch: (x, y, w, h, kind) => to.hatch(x, y + by, w, h, kind),
    curve: (x0, y0, x1, y1, stroke, width, opacity) => to.curve(x0, y0 + by, x1, y1 + by, stroke, width, opacity),
    text: (x: number, y: number, text: string, style?: TextStyle) => to.text(x, y + by, text, style),
    line: (points, stroke, width, dash) => to.line(down(points), stroke, width, dash),
    area: (points, fill, opacity) => to.area(down(points), fill, opacity),
    dot: (x, y, radius, fill) => to.dot(x, y + by, radius, fill),
  };
}

export function savedOf(shown: Shown, width: number): Drawing {
  const {plot} = shown, drawing = drawingOf({...shown, at: undefined}, width);
  let x = 2, y = kTitle;
  const names = (plot.series.length > 1 ? visible(shown) : []).map(([one, i]) => {
    const wide = kMark + 6 + one.name.length * kLetter;
    if (x > 2 && x + wide > width) x = 2, y += kRow;
    const place = {name: one.name, i, x, y: y + kRow / 2};
    x += wide + kGap;
    return place;
  });
  const head = y + (names.length ? kRow + 4 : 0);
  const draw = (to: Surface, theme: Theme) => {
    to.text(2, kTitle / 2, plot.title, {size: 15, bold: true});
    for (const one of names) {
      const {colour, dash} = lookOf(theme, one.i);
      to.line([[one.x, one.y], [one.x + kMark, one.y]], colour, plot.marks === 'lines' ? 3 : 9, dash);
      to.text(one.x + kMark + 6, one.y, one.name);
    }
    drawing.draw(lower(to, head), theme);
  };
  return {width: drawing.width, height: drawing.height + head, draw};
}
