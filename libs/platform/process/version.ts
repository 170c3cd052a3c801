import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Returns the version in the package.json above the sources, or above the build. */
export function readVersion(directory = import.meta.dirname): string {
  const file = join(directory, 'package.json');
  if (!existsSync(file)) return readVersion(dirname(directory));
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
