/**
 * Text that PostgreSQL can store: without NUL and lone surrogates, which its `jsonb` refuses. For what models and tools
 * say; what callers send is refused instead (decisions, section 7).
 */
export function storableText(text: string): string {
  return text.replaceAll('\0', '').replace(LONE_SURROGATES, '\uFFFD');
}

const LONE_SURROGATES = /\p{Surrogate}/gu;

/** Whether `storableText` would leave it as it is. */
export function isStorable(text: string): boolean {
  return !text.includes('\0') && text.search(LONE_SURROGATES) === -1;
}
