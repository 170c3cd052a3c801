/** How far overview and lists may look back. Minutes. */
export const WINDOWS = [
  { value: '15', label: '15 min' },
  { value: '60', label: '1 h' },
  { value: '360', label: '6 h' },
  { value: '1440', label: '24 h' },
  { value: '10080', label: '7 d' },
];

const DEFAULT = 60;

/** What the address says, if it is one of them. */
export const windowOf = (value: string): number =>
  WINDOWS.some((window) => window.value === value) ? Number(value) : DEFAULT;

export const nameOfWindow = (minutes: number): string =>
  WINDOWS.find(({ value }) => value === String(minutes))?.label ?? `${minutes} min`;
