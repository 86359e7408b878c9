// SPDX-License-Identifier: Apache-2.0
// A report: the page of curve.html and of experiments. Its data are in the page itself; nothing is fetched.
import {render} from 'preact';
import {turnTheme} from '../theme';
import {PlotView} from './plot';
import {readReport, type Report} from './report';

const kOutcome = {confirmed: '✓ confirmed', refuted: '✗ refuted', open: '? open'};
const isNumber = (text: string) => /^[<>≤≥~]?\s*[-+−]?[\d.,]+(e[-+]?\d+)?\s*(%|x|ms|s|us|GB|MB|KB)?(\s*(±|\(|to\b).*)?$/i.test(text.trim()) || /^[–-]?$/.test(text.trim());

function Table({title, columns, rows}: Report['tables'][number]) {
  const words = columns.map((_, i) => !rows.every((row) => isNumber(row[i])));
  const kind = (i: number) => (words[i] ? 'words' : '');
  return (
    <section class="data"><h2>{title}</h2>
      <div class="scroll" tabIndex={0}><table>
        <thead><tr>{columns.map((name, i) => <th class={kind(i)}>{name}</th>)}</tr></thead>
        <tbody>{rows.map((row) => <tr>{row.map((text, i) => <td class={kind(i)}>{text}</td>)}</tr>)}</tbody>
      </table></div></section>
  );
}

function Page({report}: { report: Report }) {
  return (
    <main class="report">
      <div class="top"><h1>{report.title}</h1><button type="button" onClick={turnTheme} title="light or dark" aria-label="Light or dark">◐</button></div>
      {report.verdicts.map(({outcome, text}) => <div class={`verdict ${outcome}`}><b>{kOutcome[outcome]}</b><span>{text}</span></div>)}
      {report.paragraphs.map((text) => <p>{text}</p>)}
      {report.plots.map((plot, i) => <PlotView plot={plot} number={i + 1} />)}
      {report.tables.map((table) => <Table {...table} />)}
      {report.footer && <footer class="soft">{report.footer}</footer>}
    </main>
  );
}

const root = document.getElementById('app')!;
try {
  const report = readReport(document.getElementById('data')!.textContent ?? '');
  document.title = report.title;
  root.textContent = '';
  render(<Page report={report} />, root);
} catch (error) {
  root.textContent = `This report cannot be shown: ${(error as Error).message}`;
}
