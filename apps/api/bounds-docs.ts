import { BOUNDS, type Bound, type Beyond, type BoundUnit } from '#domain';
import { bytes, count, GENERATED, time } from './limits-docs.ts';

/** The page whose part `bounds` is generated from the table of bounds. */
export const BOUNDS_PAGE = 'docs/reliability.md';

const INPUTS: Record<keyof typeof BOUNDS, string> = {
  requests: 'Requests',
  manifests: 'Manifests',
  messages: 'Messages of model providers and tool servers',
  toolServers: 'Tool servers',
  toolCalls: 'Tool calls and their results',
  files: 'Files',
  answers: 'Model answers',
  transcripts: 'Transcripts, prompts and pages of the log',
  texts: 'Texts and states of Threads',
};

const OUTCOMES: Record<Beyond, string> = {
  refused: 'is refused',
  cut: 'is cut or left out',
  skipped: 'works without this computation',
  pool: 'runs in the task pool',
  slices: 'is divided into slices, or gets its own turn',
};

const VALUES: Record<BoundUnit, (value: number) => string> = {
  bytes: (value) => (value % 1024 === 0 ? bytes(value) : `${count(value)} bytes`),
  ms: time,
  'CPU ms': (value) => `${time(value)} of CPU time`,
  // For example, 64 Ki.
  units: (value) => `${value % 1024 === 0 ? bytes(value).slice(0, -1) : count(value)} UTF-16 units`,
  characters: (value) => `${count(value)} characters`,
  levels: (value) => `${count(value)} levels`,
  values: (value) => `${count(value)} values`,
  entries: count,
};

/** Returns the rows of one kind of input: one for each outcome. */
function rowsOf(input: string, bounds: readonly Bound[]): string[] {
  const outcomes = Object.keys(OUTCOMES) as Beyond[];
  return outcomes.flatMap((beyond) => {
    const lines = bounds
      .filter((bound) => bound.beyond === beyond)
      .map(({ value, unit, what }) => `${VALUES[unit](value)}${unit === 'entries' ? ' ' : ': '}${what}`);
    return lines.length === 0 ? [] : [`| ${input} | ${lines.join('<br>')} | ${OUTCOMES[beyond]} |`];
  });
}

/** Returns the page with its generated part replaced. */
export function withBounds(page: string): string {
  const rows = Object.entries(INPUTS).flatMap(([kind, input]) =>
    rowsOf(input, Object.values<Bound>(BOUNDS[kind as keyof typeof BOUNDS])),
  );
  const table = ['| input | bound | beyond it |', '|---|---|---|', ...rows].join('\n');
  return page.replace(GENERATED, (_, begin: string, _name, end: string) => `${begin}${table}${end}`);
}
