import type { Tool } from '../harness.ts';
import { TOPICS } from './guide-topics.ts';

const text = { type: 'string' } as const;

export const GUIDE_TOOLS: readonly Tool[] = [
  {
    name: 'look_up',
    title: 'Look up',
    description: 'Returns what the guide knows about a topic.',
    inputSchema: {
      type: 'object',
      properties: { topic: { enum: TOPICS.map(({ name }) => name) } },
      required: ['topic'],
    },
    policy: 'allow',
    idempotent: true,
    readOnly: true,
    execute: async ({ topic }) => ({ text: TOPICS.find(({ name }) => name === topic)!.text, isError: false }),
  },
  {
    name: 'write_page',
    title: 'Write a page',
    description: 'Saves a page as a file of the Thread.',
    inputSchema: { type: 'object', properties: { name: text, text }, required: ['name', 'text'] },
    policy: 'ask',
    idempotent: true,
    execute: async ({ name, text: page }, { saveArtifact }) => {
      const bytes = new TextEncoder().encode(String(page));
      await saveArtifact({ name: String(name), mimeType: 'text/markdown', bytes });
      return { text: `Saved ${String(name)}, ${bytes.byteLength} bytes.`, isError: false };
    },
  },
  {
    name: 'check_service',
    title: 'Check the service',
    description: 'Returns the Run that has called it.',
    inputSchema: { type: 'object' },
    policy: 'allow',
    idempotent: true,
    readOnly: true,
    execute: async (_input, { runId }) => ({ text: `Checked in Run ${runId}.`, isError: false }),
  },
];
