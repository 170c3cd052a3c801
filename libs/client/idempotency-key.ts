/** Returns a random Idempotency-Key. */
export function newKey(): string {
  return crypto.randomUUID();
}
