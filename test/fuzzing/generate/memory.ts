import { eventually, type SpawnedNode } from '#testing';

/**
 * For NODE_OPTIONS: on SIGUSR2 the process collects its garbage and prints what it still holds. Not --expose-gc, which Node
 * 20 does not take from there.
 */
const TELL = `
import v8 from 'node:v8';
import vm from 'node:vm';
v8.setFlagsFromString('--expose-gc');
const gc = vm.runInNewContext('gc');
let told = 0;
process.on('SIGUSR2', async () => {
  for (let i = 0; i < 4; i++) {
    gc();
    await new Promise((resolve) => setImmediate(resolve));
  }
  console.log('memory ' + ++told + ' ' + process.memoryUsage.rss() + ' ' + process.memoryUsage().heapUsed);
});
`;

export const TELLS_MEMORY = {
  NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(TELL)}`,
  // glibc raises these to 32 MiB as large blocks are freed, and from then on keeps free memory that looks like growth: steps
  // of 30 MiB at random times, while V8's heap stood still (measured). With them RSS is what the process itself holds.
  MALLOC_MMAP_THRESHOLD_: '131072',
  MALLOC_TRIM_THRESHOLD_: '131072',
};

export interface Memory {
  rss: number;
  heap: number;
}

/** What a process started with TELLS_MEMORY holds after its garbage is gone, bytes. */
export async function memoryOf(process: SpawnedNode): Promise<Memory> {
  const told = () => [...process.output().matchAll(/^memory \d+ (\d+) (\d+)$/gm)];
  const before = told().length;
  process.signal('SIGUSR2');
  await eventually(() => told().length > before, { what: 'the process tells its memory', timeoutMs: 20_000 });
  const [, rss, heap] = told().at(-1)!;
  return { rss: Number(rss), heap: Number(heap) };
}
