/**
 * A child of the task pool. Reads one request at a time from descriptor 0 and writes its answer to descriptor 3. Each is a
 * header of two 32-bit lengths, a V8-serialized value, and raw bytes. Not TypeScript, so that the same file runs from the
 * sources and from dist/.
 */
import { readSync, writeFileSync, writeSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { deserialize, serialize } from 'node:v8';

const REQUESTS = 0;
const ANSWERS = 3;
const HEADER_BYTES = 8;

/** Returns null at the end of the requests: the parent has closed the pool, or is gone. */
function read(length) {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length;) {
    const count = readSync(REQUESTS, bytes, at, length - at, null);
    if (count === 0) return null;
    at += count;
  }
  return bytes;
}

function write(bytes) {
  for (let at = 0; at < bytes.byteLength;) at += writeSync(ANSWERS, bytes, at);
}

function readRequest() {
  const header = read(HEADER_BYTES);
  if (header === null) return null;
  const lengths = new DataView(header.buffer);
  const message = read(lengths.getUint32(0));
  const bytes = message && read(lengths.getUint32(4));
  return bytes && { ...deserialize(message), bytes };
}

function writeAnswer(answer, bytes = new Uint8Array(0)) {
  const message = serialize(answer);
  const header = new DataView(new ArrayBuffer(HEADER_BYTES));
  header.setUint32(0, message.byteLength);
  header.setUint32(4, bytes.byteLength);
  write(new Uint8Array(header.buffer));
  write(message);
  write(bytes);
}

async function answer({ module, value, bytes }) {
  try {
    const { default: run } = await import(pathToFileURL(module).href);
    const result = await run(value, bytes);
    writeAnswer({ value: result.value }, result.bytes);
  } catch (error) {
    const message = String(error?.message ?? error);
    const isMemory = /allocation failed|out of memory|invalid (array|string) length/i.test(message);
    writeAnswer({ failed: { reason: isMemory ? 'memory' : 'crashed', message: message.slice(0, 500) } });
  }
}

try {
  // If the machine or the container runs out of memory, the kernel ends a child rather than the process that serves everybody.
  writeFileSync('/proc/self/oom_score_adj', '1000');
} catch {
  // The file exists on Linux only.
}
// An error that an answered request left behind must not end the next one.
process.on('unhandledRejection', () => undefined);
for (let request = readRequest(); request !== null; request = readRequest()) {
  await answer(request);
  request = null;
  // Runs callbacks that the request has left, because the next read blocks the event loop.
  await setImmediate();
}
process.exit(0);
