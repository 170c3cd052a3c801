/** The end of a page of Threads: its last Thread, and when that Thread had last changed at the time. */
export interface ThreadPlace {
  updatedAt: string;
  threadId: string;
}

const PLACE = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z) ([0-7][0-9A-HJKMNP-TV-Z]{25})$/;

/** One that there is, of the calendar that PostgreSQL has too. */
function isTime(text: string): boolean {
  const time = new Date(text);
  return time.getTime() >= 0 && time.toISOString() === text;
}

/** Opaque to callers, so that what is in it can change. */
export function encodePlace({ updatedAt, threadId }: ThreadPlace): string {
  return Buffer.from(`${updatedAt} ${threadId}`).toString('base64url');
}

/** Null for what is no cursor of ours. */
export function decodePlace(cursor: string): ThreadPlace | null {
  const [, updatedAt = '', threadId = ''] = PLACE.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
  return isTime(updatedAt) ? { updatedAt, threadId } : null;
}
