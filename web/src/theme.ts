// SPDX-License-Identifier: Apache-2.0
// Light or dark, against what the system says.
export function turnTheme(): void {
  const root = document.documentElement, dark = getComputedStyle(root).getPropertyValue('--name').trim() === 'dark';
  root.dataset.theme = dark ? 'light' : 'dark';
}
