// SPDX-License-Identifier: Apache-2.0
// The traces are in the page itself. Nothing is fetched.
import {render} from 'preact';
import {App} from './app';
import {readTraces, type Trace} from './trace';

function Start({text}: { text: string }) {
  let traces: Trace[];
  try {
    traces = readTraces(text, 'this page');
    if (!traces.length) throw new Error('this page: there is no trace in it, expected at least one');
  } catch (error) {
    return <p class="bad check" role="alert">{(error as Error).message}</p>;
  }
  return <App first={traces} />;
}

const root = document.getElementById('app')!;
root.textContent = '';
render(<Start text={document.getElementById('data')!.textContent ?? ''} />, root);
