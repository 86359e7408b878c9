// SPDX-License-Identifier: Apache-2.0
// Reports (plot.html) in a browser: curve.html and what experiments write.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {readFileSync, writeFileSync} from 'node:fs';
import {join, resolve} from 'node:path';
import {close, here, kLooks, link, sideways, withData} from './harness.mjs';

const hostileText = '</script><img src=x onerror=alert(1)>';
const report = {
  format: 'heed-report', version: '1.0', title: `A report ${hostileText}`, paragraphs: [hostileText], footer: 'made by hand',
  verdicts: [{outcome: 'confirmed', text: 'yes'}, {outcome: 'refuted', text: 'no'}, {outcome: 'open', text: 'perhaps'}],
  plots: [
    {title: 'Lines', marks: 'lines', x: {label: 'tokens', scale: 'log'}, y: {label: 'accuracy', low: 0}, note: 'quartiles',
      series: [{name: 'with', points: [[1, 0.5, 0.4, 0.6], [10, 0.75, 0.7, 0.8], [100, null], [1000, 0.9]]}, {name: 'without', points: [[1, 0.25], [10, 0.125]]}]},
    {title: 'Bars', marks: 'bars', x: {label: ''}, y: {label: 'ms'}, categories: ['first', 'a name that is so long that it does not fit beside its bar on a small screen'], series: [{name: 'time', points: [[0, 3], [1, 4, 3, 5]]}]},
    {title: 'Dots', marks: 'dots', x: {label: ''}, y: {label: 'error', scale: 'log'}, categories: ['x', 'y'], series: [{name: 'e', points: [[0, 1e-7], [1, 0]]}]},
    {title: 'Empty', marks: 'lines', x: {label: 'step'}, y: {label: 'loss'}, series: [{name: 'dev', points: []}]},
  ],
  tables: [{title: 'Runs', columns: ['name', 'value'], rows: [[hostileText, '0.5']]}],
};
export function writeReport(out) {
  const file = resolve(out, 'report.html');
  writeFileSync(file, withData(readFileSync(join(here, '../dist/plot.html'), 'utf8'), JSON.stringify(report)));
  return file;
}

export function reportTests({open, shoot, shootAll, out}, heed, curve) {
  const tests = [], reportFile = resolve(out, 'report.html');
  const test = (name, body) => tests.push([name, body]);

  test('a report shows its plots and their numbers, and text is text', async () => {
    for (const [width, dark] of kLooks) {
      const page = await open(link(reportFile), {width, dark});
      assert.equal(await page.locator('.plot canvas').count(), 4);
      assert.equal(await page.locator('img').count(), 0);
      assert.equal(await page.textContent('h1'), report.title);
      assert.ok((await sideways(page)) <= 0, `${width}: ${await sideways(page)} px too wide`);
      await shoot(page, 'report', width, dark);
      const first = page.locator('.plot').first(), readout = () => first.locator('.readout').textContent();
      assert.equal(await readout(), 'quartiles');
      await first.locator('[role=group]').focus();
      await page.keyboard.press('ArrowRight');
      assert.equal(await readout(), 'tokens 1: with 0.5 (0.4 to 0.6) · without 0.25');
      await page.keyboard.press('End');
      assert.equal(await readout(), 'tokens 1000: with 0.9');
      await first.locator('.key button').first().click();
      await first.locator('[role=group]').focus();
      await page.keyboard.press('Home');
      assert.equal(await readout(), 'tokens 1: without 0.25', 'a series that is switched off');
      await first.locator('summary').click();
      await first.locator('tbody tr').nth(1).waitFor();
      assert.deepEqual(await first.locator('tbody tr').nth(1).locator('th, td').allTextContents(), ['10', '0.75 (0.7 to 0.8)', '0.125']);
      await close(page);
    }
  });

  test('plots of a report are saved, and pointing at them reads them', async () => {
    const page = await open(link(reportFile));
    const save = async (kind) => {
      const [file] = await Promise.all([page.waitForEvent('download'), page.locator('.plot').first().getByText(kind, {exact: true}).click()]);
      return readFileSync(await file.path());
    };
    const svg = (await save('SVG')).toString();
    assert.equal(await page.evaluate((text) => new DOMParser().parseFromString(text, 'image/svg+xml').querySelector('parsererror') === null, svg), true);
    assert.equal((svg.match(/<circle/g) ?? []).length, 5, 'a dot for each value');
    for (const text of [await page.locator('.plot h2').first().textContent(), 'with', 'without'])
      assert.ok(svg.includes(`>${text}</text>`), `a saved picture says '${text}'`);
    assert.equal((await save('PNG')).subarray(1, 4).toString(), 'PNG');
    assert.equal((await save('CSV')).toString(), 'series,tokens,accuracy,low,high\nwith,1,0.5,0.4,0.6\nwith,10,0.75,0.7,0.8\nwith,100,,,\nwith,1000,0.9,,\nwithout,1,0.25,,\nwithout,10,0.125,,\n');
    const canvas = page.locator('.plot').nth(1).locator('canvas'), box = await canvas.boundingBox();
    await canvas.hover({position: {x: box.width / 2, y: 15}});
    assert.equal(await page.locator('.plot').nth(1).locator('.readout').textContent(), 'first: time 3');
    await close(page);
  });

  test('curve.html of a training is such a report', async () => {
    const page = await open(link(curve), {width: 390});
    assert.deepEqual(await page.locator('.plot h2').allTextContents(), ['Loss of a token', 'Learning rate']);
    assert.match(await page.textContent('.plot .readout'), /^Lowest dev loss: [\d.]+ at step \d+\.$/);
    assert.ok((await sideways(page)) <= 0);
    await close(page);
    await shootAll('curve', curve, []);
  });

  test('an experiment ends in such a report', async () => {
    const folder = resolve(out, 'lab');
    execFileSync(heed, ['lab', 'scale', '--quick', '--out', folder]);
    const page = await open(link(join(folder, 'index.html')));
    assert.equal(await page.locator('.verdict.confirmed, .verdict.refuted').count(), 3);
    assert.match(await page.textContent('footer'), /heed lab scale --quick/);
    await close(page);
    await shootAll('lab', join(folder, 'index.html'), []);
  });

  return tests;
}
