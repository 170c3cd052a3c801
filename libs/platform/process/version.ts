import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Of this release, as package.json has it: above the sources and above what is built of them. */
export function readVersion(directory = import.meta.dirname): string {
  const file = join(directory, 'package.json');
  if (!existsSync(file)) return readVersion(dirname(directory));
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
