// Preloaded into an api process under test (NODE_OPTIONS=--import …): at each SIGUSR2 it collects all garbage and prints what
// is resident then, what of it is in use, how many connections its servers have, and how many timers run.
import { subscribe } from 'node:diagnostics_channel';
import { Session } from 'node:inspector';

// Not `gc()` of --expose-gc: that leaves the heap as large as it has grown, 30 MB more or less with the load of the moment.
const session = new Session();
session.connect();
const collectGarbage = () => new Promise((resolve) => session.post('HeapProfiler.collectGarbage', resolve));

let connections = 0;
subscribe('net.server.socket', ({ socket }) => {
  connections++;
  socket.once('close', () => connections--);
});

let samples = 0;
process.on('SIGUSR2', async () => {
  // Twice: the first leaves the memory of buffers to a sweeper beside it, for whom the second waits.
  await collectGarbage();
  await collectGarbage();
  const { rss, heapUsed, external } = process.memoryUsage();
  const live = heapUsed + external;
  const timers = process.getActiveResourcesInfo().filter((type) => type === 'Timeout').length;
  const counts = `${connections} connections, ${timers} timers`;
  process.stdout.write(`sample ${++samples}: ${rss} bytes, ${live} live, ${counts}\n`);
});
