import { decodeTime } from 'ulid';
import type { Tool } from '../harness.ts';

/** The echo agent's tools: one that may be repeated, one that needs permission, one that leaves a file. */
export const ECHO_TOOLS: readonly Tool[] = [
  {
    name: 'clock',
    title: 'Clock',
    description: 'Returns the time at which the Run was requested.',
    inputSchema: { type: 'object' },
    policy: 'allow',
    idempotent: true,
    readOnly: true,
    // From the Run's id and not from a clock: the same call has the same answer, whenever it is repeated.
    execute: (_input, { runId }) =>
      Promise.resolve({
        text: `The Run was requested at ${new Date(decodeTime(runId)).toISOString()}.`,
        isError: false,
      }),
  },
  {
    name: 'send_note',
    title: 'Send a note',
    description: 'Sends a note.',
    inputSchema: { type: 'object', properties: { number: { type: 'integer' }, note: { type: 'string' } } },
    policy: 'ask',
    idempotent: false,
    execute: ({ number }) => Promise.resolve({ text: `Note ${String(number)} was sent.`, isError: false }),
  },
  {
    name: 'write_file',
    title: 'Write a file',
    description: 'Writes a file to the Thread.',
    inputSchema: { type: 'object', properties: { name: { type: 'string' }, text: { type: 'string' } } },
    policy: 'allow',
    idempotent: true,
    execute: async ({ name, text }, { saveArtifact }) => {
      const bytes = new TextEncoder().encode(String(text));
      const { fileId } = await saveArtifact({ name: String(name), mimeType: 'text/plain', bytes });
      return { text: `Wrote ${String(name)}, ${bytes.byteLength} bytes, file ${fileId}.`, isError: false };
    },
  },
];
