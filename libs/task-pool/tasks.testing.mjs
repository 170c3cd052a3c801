/** Well-behaved and misbehaving tasks, by the input's `does`. */
import { readdirSync, readFileSync, readlinkSync, writeSync } from 'node:fs';
import { getPriority } from 'node:os';

const kept = [];

const does = {
  echo: ({ text }, bytes) => ({
    value: { text, length: bytes.byteLength, pid: process.pid },
    bytes: bytes.toReversed(),
  }),
  spin: () => {
    for (;;);
  },
  wait: () => new Promise((resolve) => setTimeout(resolve, 2 ** 30)),
  take: async ({ ms }) => {
    await new Promise((resolve) => setTimeout(resolve, ms));
    return { value: null };
  },
  allocateBuffers: () => {
    for (;;) kept.push(new Uint8Array(8 * 1024 * 1024).fill(1));
  },
  allocateObjects: () => {
    for (;;) kept.push({ key: [kept.length] });
  },
  keep: ({ mebibytes }) => {
    kept.push(new Uint8Array(mebibytes * 1024 * 1024).fill(1));
    return { value: process.pid };
  },
  // Writes the header of an answer, and zeros, as a child would that is no longer itself.
  announce: ({ messageBytes, bytes, zeros }) => {
    const header = new DataView(new ArrayBuffer(8));
    header.setUint32(0, messageBytes);
    header.setUint32(4, bytes);
    writeSync(3, new Uint8Array(header.buffer));
    writeSync(3, new Uint8Array(zeros));
    return new Promise(() => undefined);
  },
  exit: () => process.exit(3),
  beKilled: () => process.kill(process.pid, 'SIGKILL'),
  fail: () => {
    throw new Error('a bug');
  },
  describe: () => ({
    value: {
      env: Object.keys(process.env),
      priority: getPriority(),
      killedFirst: readFileSync('/proc/self/oom_score_adj', 'utf8').trim(),
      files: readdirSync('/proc/self/fd').flatMap((fd) => {
        try {
          return [`${fd}:${readlinkSync(`/proc/self/fd/${fd}`).replace(/\d+/g, 'N')}`];
        } catch {
          return [];
        }
      }),
    },
  }),
};

export default (value, bytes) => does[value.does](value, bytes);
