import { writeFile } from 'node:fs/promises';
import { startProfile } from './profile.ts';

/**
 * Loaded with `--import` into a process that shall be profiled: the parent says when. Not `--cpu-prof`, which counts
 * start-up in and writes only at a normal end.
 */
let stop: Awaited<ReturnType<typeof startProfile>> | null = null;

process.on('message', ({ profile }: { profile?: string }) => {
  if (profile !== undefined) void startOrStop(profile).then((answer) => process.send?.({ answer }));
});
// Listening must not keep a process alive that wants to end.
process.channel?.unref();

async function startOrStop(file: string): Promise<string> {
  if (stop === null) {
    stop = await startProfile();
    return 'started';
  }
  await writeFile(file, JSON.stringify(await stop()));
  stop = null;
  return file;
}
