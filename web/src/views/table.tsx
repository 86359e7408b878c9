// SPDX-License-Identifier: Apache-2.0
import {useEffect, useMemo, useState} from 'preact/hooks';
import type {View} from '../context';
import {exportsNow} from '../figure';
import {kLeftOut, kMasked, kNotCaptured, number, rankOf} from '../numbers';
import {cell, headName, row} from '../panel';
import {Empty, Note} from '../parts';
import {panelCsv} from './map';

const kMost = 400;

export function TableView(view: View) {
  const {panel, choices} = view;
  const [all, setAll] = useState(false);
  useEffect(() => { if (panel) exportsNow.current = {name: 'table', csv: () => panelCsv(panel)}; }, [panel]);
  const lines = useMemo(() => {
    if (!panel?.cells) return [];
    const rows = all ? panel.queries.map((_, i) => i) : [choices.query];
    return rows.flatMap((i) => {
      const values = row(panel, i);
      return panel.keys.map((_, j) => ({i, j, value: cell(panel, i, j), rank: rankOf(values, j)[0]})).sort((a, b) => b.value - a.value || a.j - b.j);
    });
  }, [panel, all, choices.query]);
  if (!panel?.cells) return <Empty>Rows of this layer were not captured.</Empty>;
  const name = (value: number) => (value === kMasked ? 'masked' : value === kNotCaptured ? 'not captured' : value === kLeftOut ? 'left out' : number(value, 4));
  return (
    <div class="with-note">
      <div>
        <p><label><input type="checkbox" checked={all} onChange={(e) => setAll(e.currentTarget.checked)} /> all rows, not only <bdi>{panel.queries[choices.query]?.label}</bdi></label></p>
        <table class="data">
          <caption>{panel.layer.path}, {headName(panel.layer, panel.head)}</caption>
          <thead><tr><th scope="col">looks</th><th scope="col" class="at">at</th><th scope="col">weight</th><th scope="col">rank</th></tr></thead>
          <tbody>{lines.slice(0, kMost).map(({i, j, value, rank}) => <tr><td><bdi>{panel.queries[i].label}</bdi></td><td class="at"><bdi>{panel.keys[j].label}</bdi></td><td>{name(value)}</td><td>{value >= 0 ? rank : ''}</td></tr>)}</tbody>
        </table>
        {lines.length > kMost && <p class="soft">{kMost} of {lines.length} lines; the saved CSV has all of them.</p>}
      </div>
      <Note title="The same as numbers"><p>Every colour on this page is a number, and here they are. Save CSV has all of this head.</p></Note>
    </div>
  );
}
