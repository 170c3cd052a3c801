import { createHash } from 'node:crypto';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const LENGTH = 9;

/** Returns nine letters and digits made of the text: 53 bits of its SHA-256. */
function shortDigest(text: string): string {
  let rest = createHash('sha256').update(text).digest().readBigUInt64BE();
  let short = '';
  for (let i = 0; i < LENGTH; i++) {
    short += ALPHABET[Number(rest % 62n)];
    rest /= 62n;
  }
  return short;
}

/**
 * Returns a short id for each stored id of a tool call, because Mistral and its templates accept only `^[a-zA-Z0-9]{9}$`. It
 * follows from the stored id alone, so all requests of a Thread agree. Of two ids with the same digest, the later one in the
 * transcript gets another digest: within a request no two are the same.
 */
export function shortCallIds(
  ids: Iterable<string>,
  digest: (text: string) => string = shortDigest,
): ReadonlyMap<string, string> {
  const shortIds = new Map<string, string>();
  const taken = new Set<string>();
  for (const id of ids) {
    if (shortIds.has(id)) continue;
    let short = digest(id);
    for (let round = 1; taken.has(short); round++) short = digest(`${id} ${round}`);
    taken.add(short);
    shortIds.set(id, short);
  }
  return shortIds;
}
