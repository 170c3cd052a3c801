import { isUtf8 } from 'node:buffer';

/** The encoding of a text. */
export interface TextEncoding {
  /** A label of `TextDecoder`. */
  label: string;
  /** Whether it was guessed, because the bytes may have other encodings too. */
  isGuess: boolean;
  /** Whether further bytes may show that it is UTF-8 with some invalid bytes, or an older encoding. */
  isOpen: boolean;
}

export const UTF_8: TextEncoding = { label: 'utf-8', isGuess: false, isOpen: true };

const BOMS: [number[], string][] = [
  [[0xef, 0xbb, 0xbf], 'utf-8'],
  [[0xff, 0xfe], 'utf-16le'],
  [[0xfe, 0xff], 'utf-16be'],
];

/** Control characters except those of plain text: backspace, tabs, line and page breaks, the end of a DOS text, escape, DEL. */
const STRAY_CONTROL = /[\x00-\x07\x0e-\x19\x1c-\x1f]/g;
/** Numbers in binary formats have several in a row. */
const CONTROLS_IN_ROW = /[\x00-\x07\x0e-\x19\x1c-\x1f]{2}/;
/** The maximum share of stray control characters in a long text that is otherwise UTF-8. A short text may have one. */
const MAX_STRAY_SHARE = 0.01;

/**
 * Returns the encoding of a text by its first bytes, null if they are not text. Looks for a byte order mark, then for UTF-16 by
 * its zeros. Else it is UTF-8 if at least half of the characters outside ASCII are valid, and otherwise the likeliest older
 * encoding. If `isCut`, the bytes may end within a character.
 */
export function encodingOf(head: Uint8Array, isCut: boolean): TextEncoding | null {
  const byMark = BOMS.find(([bom]) => bom.every((byte, i) => head[i] === byte));
  if (byMark) return { label: byMark[1], isGuess: false, isOpen: false };
  const bytes = Buffer.from(head.buffer, head.byteOffset, head.byteLength).toString('latin1');
  const stray = bytes.match(STRAY_CONTROL)?.length ?? 0;
  const isRare = stray <= Math.max(1, bytes.length * MAX_STRAY_SHARE) && !CONTROLS_IN_ROW.test(bytes);
  const isValid = isRare && isUtf8(isCut ? wholeCharacters(head) : head);
  const utf16 = unmarkedUtf16(head, isValid);
  if (utf16 !== null) return { label: utf16, isGuess: true, isOpen: false };
  if (stray > 0 && !isValid) return null;
  if (ISO_2022_JP.test(bytes)) return { label: 'iso-2022-jp', isGuess: true, isOpen: false };
  if (isValid) return UTF_8;
  const { valid, invalid } = countUtf8(head);
  // In other encodings, valid characters are rare.
  return valid > 0 && valid >= invalid ? UTF_8 : { label: guess(head, bytes), isGuess: true, isOpen: true };
}

/** The escape sequences for two-byte characters in Japanese mail. */
const ISO_2022_JP = /\x1b\$[@B]/;

/** From this many UTF-16 units, a few ASCII characters are enough evidence. */
const MANY_UNITS = 16;
/** How many times more zeros the even or the odd bytes must have. */
const MOSTLY = 4;

/** Characters that no text has: unassigned, private use, and most control characters. */
const NEVER_IN_TEXT = /[\p{Cn}\p{Co}\x00-\x07\x0e-\x1a\x1c-\x1f\x7f-\x9f\ufffd]/u;

/** Detects UTF-16 without a byte order mark: every other byte of its ASCII characters is zero. Returns null for other bytes. */
function unmarkedUtf16(head: Uint8Array, mayBeUtf8: boolean): string | null {
  const units = head.byteLength / 2;
  if (units < 2 || !Number.isInteger(units)) return null;
  const zeros = [0, 0];
  head.forEach((byte, i) => {
    if (byte === 0) zeros[i % 2]!++;
  });
  const [even = 0, odd = 0] = zeros;
  // Some characters, such as U+4E00, have a zero in the other byte.
  if (Math.max(even, odd) < Math.max(1, MOSTLY * Math.min(even, odd))) return null;
  if ((units < MANY_UNITS || mayBeUtf8) && (even + odd) * 2 < units) return null;
  const label = odd > even ? 'utf-16le' : 'utf-16be';
  // The head may end within a character.
  return NEVER_IN_TEXT.test(new TextDecoder(label).decode(head, { stream: true })) ? null : label;
}

/** Returns the bytes of UTF-8 without an incomplete character at the end. */
export function wholeCharacters(bytes: Uint8Array): Uint8Array {
  for (let back = 1; back <= 3 && back <= bytes.byteLength; back++) {
    const byte = bytes[bytes.byteLength - back]!;
    if (byte < 0x80) return bytes;
    if (byte >= 0xc0) {
      const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
      return length > back ? bytes.subarray(0, bytes.byteLength - back) : bytes;
    }
  }
  return bytes;
}

/** Counts the UTF-8 characters outside ASCII, and the invalid sequences of bytes. Encoded surrogates count as valid. */
export function countUtf8(bytes: Uint8Array): { valid: number; invalid: number } {
  let [valid, invalid] = [0, 0];
  for (let at = 0; at < bytes.byteLength;) {
    const first = bytes[at++]!;
    if (first < 0x80) continue;
    let missing = first >= 0xf5 || first < 0xc2 ? -1 : first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    for (; missing > 0 && (bytes[at] ?? 0) >> 6 === 0b10; at++) missing--;
    if (missing === 0) valid++;
    else invalid++;
  }
  return { valid, invalid };
}

interface Candidate {
  label: string;
  /** Matches one unit of bytes that are not ASCII: a character, or a run of characters. */
  unit: RegExp;
  /** Matches the units that are common in texts of this encoding. */
  common: RegExp;
  /** Matches units that occur in every text of this encoding. */
  frequent?: RegExp;
}

const TWO_BYTES = /[\x81-\xfe][\x30-\xfe]|[\x80-\xff]/g;
const ONE_BYTE = /[\x80-\xff]/g;
/** Accented Latin letters occur alone or in pairs between ASCII letters. Words of other alphabets consist of such bytes only. */
const RUN = /[\x80-\xff]+/g;
const latin = (letters: string): RegExp =>
  // Includes the euro sign, quotes, dashes, the ellipsis, the no-break space and guillemets of all Windows code pages.
  new RegExp(`^[\\x80\\x84\\x85\\x91-\\x97\\xa0\\xa7\\xab\\xb0\\xb7\\xbb${letters}]{1,2}$`);

/**
 * The guess is the first candidate with the largest share of common units. Common are the everyday characters of Chinese,
 * Japanese and Korean, the accented letters of Latin alphabets, and the most frequent letters of other alphabets.
 */
const CANDIDATES: readonly Candidate[] = [
  {
    label: 'euc-kr',
    unit: TWO_BYTES,
    common: /^[\xa1\xa3\xb0-\xc8][\xa1-\xfe]$/,
    frequent:
      /^(\xc0[\xba\xbb\xc7\xcc]|\xb4[\xc2\xd9]|\xb0[\xa1\xed]|\xbf\xa1|\xc7[\xcf\xd1]|\xb7\xce|\xc1\xf6|\xbb\xe7|\xb1\xe2|\xb5\xb5|\xb8\xae)$/,
  },
  {
    label: 'euc-jp',
    unit: TWO_BYTES,
    common: /^[\xa1\xa3-\xa5\xb0-\xf4][\xa1-\xfe]$/,
    frequent: /^[\xa4\xa5][\xa1-\xf6]$/,
  },
  { label: 'gb18030', unit: TWO_BYTES, common: /^[\xa1-\xa3\xb0-\xd7][\xa1-\xfe]$/ },
  {
    label: 'windows-1252',
    unit: RUN,
    common: latin(
      '\\x8c\\x99\\x9c\\xa1-\\xa3\\xa9\\xae\\xb2\\xb4\\xb5\\xbf-\\xcf\\xd1-\\xd6\\xd8-\\xdc\\xdf-\\xef\\xf1-\\xf6\\xf8-\\xfc',
    ),
  },
  {
    label: 'windows-1250',
    unit: RUN,
    common: latin(
      '\\x8a\\x8c-\\x8f\\x9a\\x9c-\\x9f\\xa3\\xa5\\xaa\\xaf\\xb3\\xb9\\xba\\xbf\\xc1\\xc3\\xc6\\xc8-\\xca\\xcc-\\xd6\\xd8-\\xde\\xe1-\\xe4\\xe6\\xe8-\\xea\\xec-\\xf6\\xf8-\\xfe',
    ),
  },
  {
    label: 'windows-1254',
    unit: RUN,
    common: latin('\\xc2\\xc7\\xce\\xd0\\xd6\\xdb-\\xde\\xe2\\xe7\\xee\\xf0\\xf6\\xfb-\\xfe'),
  },
  {
    label: 'shift_jis',
    unit: /[\x81-\x9f\xe0-\xfc][\x40-\xfc]|[\x80-\xff]/g,
    common: /^[\x81-\x83\x88-\x9f\xe0-\xea][\x40-\xfc]$/,
    frequent: /^(\x82[\x9f-\xf1]|\x83[\x40-\x96])$/,
  },
  { label: 'big5', unit: TWO_BYTES, common: /^[\xa1-\xc6][\x40-\x7e\xa1-\xfe]$/ },
  { label: 'windows-1251', unit: ONE_BYTE, common: /[\xe0\xe2\xe5\xe8\xea-\xf3\xb3\xbf\x96\x97\xa0\xab\xbb]/ },
  { label: 'koi8-r', unit: ONE_BYTE, common: /[\xc1\xc5\xc9\xcb-\xd5\xd7]/ },
  { label: 'ibm866', unit: ONE_BYTE, common: /[\xa0\xa2\xa5\xa8\xaa-\xaf\xe0-\xe3]/ },
  {
    label: 'windows-1253',
    unit: ONE_BYTE,
    common: /[\xdc-\xdf\xe1\xe5\xe7\xe9-\xeb\xed\xef-\xf5\xfc-\xfe\xa0\xab\xbb]/,
  },
  { label: 'windows-1255', unit: ONE_BYTE, common: /[\xe0-\xfa]/, frequent: /[\xf8-\xfa]/ },
  { label: 'windows-1256', unit: ONE_BYTE, common: /[\xc7\xc8\xca\xcd\xcf\xd1\xd3\xda\xdd\xdf\xe1\xe3-\xe6\xed]/ },
];

/** The encoding of texts that match no candidate. */
const DEFAULT_LABEL = 'windows-1252';
/** The smallest share of common units that a guess needs, and of frequent units among them. */
const MIN_COMMON = 0.5;
const MIN_FREQUENT = 0.1;

/** Returns the label of the likeliest encoding of bytes that are not UTF-8. `bytes` is `head` as Latin 1. */
function guess(head: Uint8Array, bytes: string): string {
  let best = { label: DEFAULT_LABEL, share: MIN_COMMON };
  for (const candidate of CANDIDATES) {
    const share = commonShare(candidate, bytes);
    if (share > best.share && isDecodable(head, candidate.label)) best = { label: candidate.label, share };
  }
  return best.label;
}

function commonShare({ unit, common, frequent }: Candidate, bytes: string): number {
  const units = bytes.match(unit) ?? [];
  const shareOf = (wanted: RegExp) => units.filter((one) => wanted.test(one)).length / Math.max(1, units.length);
  return frequent !== undefined && shareOf(frequent) < MIN_FREQUENT ? 0 : shareOf(common);
}

function isDecodable(head: Uint8Array, label: string): boolean {
  try {
    new TextDecoder(label, { fatal: true }).decode(head, { stream: true });
    return true;
  } catch {
    return false;
  }
}
