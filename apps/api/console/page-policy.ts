/** Operators' pages are of nobody else's frames, and tell no other site where they are. */
const HEADERS = {
  'Cache-Control': 'no-cache',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
};

/**
 * Of a page that takes nothing from elsewhere and has no script within it. `style`: the source of the style within it; `base`:
 * that of what its addresses are relative to.
 */
export function pageHeaders({ style, base = "'none'" }: { style: string; base?: string }): Record<string, string> {
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' ${style}`,
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    `base-uri ${base}`,
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join('; ');
  return { ...HEADERS, 'Content-Security-Policy': policy };
}
