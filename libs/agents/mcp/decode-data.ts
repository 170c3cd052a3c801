/** The bytes of a file in a tool's result, and the type if a data URI has one. */
export interface DecodedData {
  bytes: Buffer;
  mimeType?: string;
}

/** Decodes base64, base64url and data URIs. Returns null for other text. */
export function decodeData(text: string): DecodedData | null {
  if (!/^\s*data:/i.test(text)) return decodeBase64(text);
  const comma = text.indexOf(',');
  if (comma === -1) return null;
  const [mimeType = '', ...parameters] = text
    .slice(text.indexOf(':') + 1, comma)
    .split(';')
    .map((part) => part.trim());
  const payload = decodePercent(text.slice(comma + 1));
  if (payload === null) return null;
  const isBase64 = parameters.some((parameter) => parameter.toLowerCase() === 'base64');
  const decoded = isBase64 ? decodeBase64(payload) : { bytes: Buffer.from(payload) };
  return decoded && { ...decoded, ...(mimeType !== '' && { mimeType }) };
}

function decodeBase64(text: string): DecodedData | null {
  if (/[^A-Za-z0-9+/_=\s-]/.test(text)) return null;
  // Node accepts both alphabets, with or without padding.
  const bytes = Buffer.from(text, 'base64');
  return bytes.length === 0 && text.trim() !== '' ? null : { bytes };
}

function decodePercent(text: string): string | null {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}
