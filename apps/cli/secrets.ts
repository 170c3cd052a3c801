/** Anything that begins as a token of ours does, whole or cut. */
const TOKEN = /(spool_(?:pat|svc|op)_)[\w-]+/g;

/** For everything that goes to standard error: whatever was given, a secret is not said again. */
export function maskTokens(text: string): string {
  return text.replace(TOKEN, '$1…');
}

export function holdsToken(text: string): boolean {
  return text.search(TOKEN) !== -1;
}
