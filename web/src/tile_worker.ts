// SPDX-License-Identifier: Apache-2.0
// The worker of tiles.ts: is told a head once, then makes tiles in the order in which they are asked for, the newest first.
import {makeTile, type LongHead} from './tile';

interface Wanted { id: string; level: number; row: number; column: number }
let head: LongHead | undefined, wanted: Wanted[] = [], busy = false;
const scope = self as unknown as { postMessage(message: unknown, transfer: Transferable[]): void; onmessage: (event: MessageEvent) => void };

function next(): void {
  const one = wanted.pop();
  busy = one !== undefined;
  if (!one || !head) return;
  const cells = makeTile(head, one.level, one.row, one.column);
  scope.postMessage({id: one.id, cells}, [cells.buffer]);
  setTimeout(next);
}
scope.onmessage = (event) => {
  if (event.data.head) { head = event.data.head; wanted = []; return; }
  wanted.push(event.data);
  if (wanted.length > 64) wanted.shift();
  if (!busy) { busy = true; setTimeout(next); }
};
