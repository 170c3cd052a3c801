import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A fenced block of a page of docs/api. */
export interface Block {
  language: string;
  /** The name of the file that the block shows; empty for other blocks. */
  file: string;
  code: string;
}

export const API_DOCS = join(import.meta.dirname, '../../docs/api');

export const blocksOf = (page: string): Block[] =>
  [...readFileSync(join(API_DOCS, page), 'utf8').matchAll(/^```(\S*) ?(.*)\n([^]*?)^```$/gm)].map(
    ([, language = '', file = '', code = '']) => ({ language, file, code }),
  );

/** Programs of events.md, section "Other clients". Each exports `follow`. */
export const CLIENT_PROGRAMS = {
  node: ['eventsource.mjs', 'parser.mjs'],
  browser: ['browser.mjs', 'fetch-event-source.mjs'],
} as const;

/** Programs of browsers.md that no other program imports. `test/docs/browsers.e2e.spec.ts` runs them. */
export const APPLICATION_PROGRAMS = ['app.mjs', 'page.mjs'] as const;
