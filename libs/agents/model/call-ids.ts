import { createHash } from 'node:crypto';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const LENGTH = 9;

/** Returns nine letters and digits: about 53 bits of the SHA-256 of the text. */
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
 * Returns a short id for each stored id of a tool call, because Mistral and its templates accept only `^[a-zA-Z0-9]{9}$`. The
 * short id is derived from the stored id, so all requests of a Thread agree. If two ids have the same digest, the later one in
 * the transcript gets another digest, so all ids of a request are different.
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
