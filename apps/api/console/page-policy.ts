/** Forbids frames around operators' pages, and a `Referer` header from them. */
const HEADERS = {
  'Cache-Control': 'no-cache',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
};

/**
 * Returns the headers of a page without inline script that loads nothing from another origin. `style` is the CSP source of its
 * inline style, and `base` that of its `<base>`.
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
