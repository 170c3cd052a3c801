import type { LogEntry } from './client.ts';
import type { ModelScript } from './model-scripts.ts';
import type { ProviderPoint } from './provider/scripted-provider.ts';
import type { ToolPoint } from './recording-tools.ts';

/** Where a Run is when its worker is lost. */
export type Place =
  | { at: ProviderPoint; step: number }
  | { tool: ToolPoint; n: number }
  /** Nothing can be added to the table. */
  | { locked: 'files' | 'unclaimed_blobs' }
  /** In a call that cannot be held. */
  | 'called';

export interface Moment {
  moment: string;
  script: ModelScript;
  place: Place;
  /** What the log has by then. */
  stored?: LogEntry['type'];
  /** For which steps the provider was asked in the end. */
  steps: number[];
  /** Of each call: how often the server was asked in the end, and how often it took effect. */
  uses?: [asked: number, effects: number][];
  /** Whether the model was told that the outcome is unknown. */
  isUnknown?: boolean;
}

/**
 * Each moment of a Run at which its worker can be lost, and what has to come of it (F1 of
 * docs/reliability.md#faults).
 */
export const MOMENTS: Moment[] = [
  { moment: 'asked, and nothing said', script: 'say', place: { at: 'asked', step: 0 }, steps: [0, 0] },
  {
    ...{ moment: 'mid-text', script: 'say', place: { at: 'half said', step: 0 } },
    ...{ stored: 'agent.message.delta', steps: [0, 0] },
  },
  {
    ...{ moment: 'mid-text behind a tool', script: 'echo', place: { at: 'half said', step: 1 } },
    ...{ stored: 'agent.message.delta', steps: [0, 1, 1] },
  },
  {
    ...{ moment: 'before the end of the Run', script: 'act', place: { at: 'all said', step: 1 } },
    ...{ steps: [0, 1, 1], uses: [[1, 1]] },
  },
  {
    ...{ moment: 'before a tool', script: 'act', place: { tool: 'asked', n: 1 } },
    ...{ steps: [0, 1], uses: [[1, 0]], isUnknown: true },
  },
  {
    ...{ moment: 'after a tool, before its append', script: 'act', place: { tool: 'done', n: 1 } },
    ...{ steps: [0, 1], uses: [[1, 1]], isUnknown: true },
  },
  {
    ...{ moment: 'after a tool that a person allowed', script: 'note', place: { tool: 'done', n: 1 } },
    ...{ steps: [0, 1], uses: [[1, 1]], isUnknown: true },
  },
  {
    ...{ moment: 'before a tool that only reads', script: 'lookup', place: { tool: 'asked', n: 1 } },
    ...{ steps: [0, 1], uses: [[2, 1]] },
  },
  {
    ...{ moment: 'after a tool that only reads', script: 'lookup', place: { tool: 'done', n: 1 } },
    ...{ steps: [0, 1], uses: [[2, 2]] },
  },
  {
    ...{ moment: 'between two that only read', script: 'both', place: { tool: 'asked', n: 2 } },
    ...{ stored: 'tool.use.completed', steps: [0, 1] },
    uses: [
      [1, 1],
      [2, 1],
    ],
  },
  {
    ...{ moment: 'in a call over stdio', script: 'hang', place: 'called' },
    ...{ stored: 'tool.use.started', steps: [0, 1], isUnknown: true },
  },
  {
    ...{ moment: 'with a file’s bytes stored', script: 'write', place: { locked: 'files' } },
    ...{ stored: 'tool.use.started', steps: [0, 1] },
  },
  {
    ...{ moment: 'with nothing of a file stored', script: 'write', place: { locked: 'unclaimed_blobs' } },
    ...{ stored: 'tool.use.started', steps: [0, 1] },
  },
];
