// SPDX-License-Identifier: Apache-2.0
// What every view is given.
import type {Choices, Panel} from './panel';
import type {Attention, Trace} from './trace';

export interface View {
  traces: Trace[]; trace: Trace; layers: Attention[];
  layer: Attention | undefined; panel: Panel | undefined;
  choices: Choices;
  set: (change: Partial<Choices>) => void;   // and what is said of it to who cannot see
  hover: { query: number; key: number } | undefined;
  setHover: (at: { query: number; key: number } | undefined) => void;
}
