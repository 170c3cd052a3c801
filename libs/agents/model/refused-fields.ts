import { ownTurn } from '#platform';
import { checkShape } from '../json-shape.ts';
import { fitRequest, type RequestBody } from './fit-request.ts';
import type { Server } from './learned-quirks.ts';
import type { OnOddity } from './oddities.ts';
import { quirksOf, type OptionalField, type Quirks } from './server-profiles.ts';

type Fetch = typeof globalThis.fetch;

/** The most repeated requests of a call. Servers name one field at a time, and may refuse both names of the answer's limit. */
const MAX_MORE_REQUESTS = 4;
const REFUSALS: readonly number[] = [400, 422];
/** The status with which llama.cpp reports an error in a template. */
const TEMPLATE_FAILED = 500;

/** Matches an error about a field that the server, or its model, does not support. */
const NOT_TAKEN =
  /unsupported|deprecated|not (supported|implemented)|only (supported|allowed) (when|if)|unknown|unrecogni[sz]ed|not recogni[sz]ed|unexpected|not permitted|not allowed|cannot find field|extra[ _](inputs?|fields?|forbidden)|additional propert|(does not|doesn't|do not|cannot) (support|exist|accept|take|recogni[sz]e|allow)|invalid (parameter|argument|field|property|key)\b/i;
/** Matches an error about the value of a field. The field is supported, so it stays. */
const WRONG_VALUE =
  /too (large|high|small|low|big|long)|exceed|must be (a|an|at|less|greater|between|in|one|>|<|=|\d)|between -?\d|values? (above|below|over|under)/i;
/** Matches Ollama's error about `reasoning_effort`. */
const NO_THINKING = /(does not|doesn't) support thinking/i;
/** Matches an error about missing reasoning. */
const WANTED = /must be (passed|provided|included|sent)|passed back|missing|required|must include/i;
/** Matches an error about the schema of a tool. The repetitions are bounded, because a server can send any text. */
const SCHEMA =
  /invalid schema for function|invalid_function_parameters|function_?declarations\b.{0,20}parameters|tools\b.{0,40}(parameters|input_schema)/i;

/** Matches an error about the order of messages. */
const ROLES = /roles? must alternate|alternate user|unexpected role|after role|message_order/i;

/** The quirks that a refusal of each field changes; undefined if nothing is left to change. */
const CHANGES: Record<string, (quirks: Quirks, usual: Quirks) => Partial<Quirks> | undefined> = {
  ...Object.fromEntries(
    (['stream_options', 'reasoning_effort', 'temperature'] as const).map((field) => [
      field,
      ({ leaveOut }: Quirks) => ({ leaveOut: [...leaveOut, field] satisfies OptionalField[] }),
    ]),
  ),
  max_tokens: (quirks, usual) => ({ answerLimit: otherLimit(quirks, usual) }),
  max_completion_tokens: (quirks, usual) => ({ answerLimit: otherLimit(quirks, usual) }),
  reasoning_content: () => ({ reasoning: 'none' }),
  reasoning: () => ({ reasoning: 'none' }),
};

/** Returns the other name, and `none` once both were refused. Spool itself cuts an answer that is too long. */
function otherLimit({ answerLimit }: Quirks, usual: Quirks): Quirks['answerLimit'] {
  if (answerLimit !== usual.answerLimit) return 'none';
  return answerLimit === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens';
}

/**
 * Returns a `fetch` that repeats a request without the field that the server refused by name. Once a request has succeeded, it
 * remembers and reports the refused fields.
 */
export function askingAgain(fetch: Fetch, { model, quirks: known, learn }: Server, onOddity: OnOddity): Fetch {
  return async (input, init) => {
    let response = await fetch(input, init);
    if (typeof init?.body !== 'string') return response;
    let quirks = known;
    let learned: Partial<Quirks> = {};
    for (let more = 0; more < MAX_MORE_REQUESTS && mayBeRefused(response); more++) {
      const error = await response.text();
      const { status, statusText, headers } = response;
      response = new Response(error, { status, statusText, headers });
      // These steps get turns of their own, because the request has the whole transcript.
      await ownTurn();
      const body = fitRequest(JSON.parse(init.body) as RequestBody, quirks);
      await ownTurn();
      const usual = quirksOf(model);
      const changes = quirksAfter({ status, error }, { body, quirks, usual, fixed: model.quirks ?? {} });
      if (changes === null) return response;
      learned = { ...learned, ...changes };
      quirks = { ...quirks, ...changes };
      response = await fetch(input, { ...init, body: JSON.stringify(fitRequest(body, quirks)) });
      if (!response.ok) continue;
      learn(learned);
      for (const [name, value] of Object.entries(learned))
        onOddity('refused', `model.quirks.${name}: ${String(value)}`);
    }
    return response;
  };
}

function mayBeRefused({ status }: Response): boolean {
  return REFUSALS.includes(status) || status === TEMPLATE_FAILED;
}

interface Refused {
  body: RequestBody;
  /** The quirks of the refused body. */
  quirks: Quirks;
  /** The quirks without those that were learned. */
  usual: Quirks;
  /** The quirks that the manifest sets. They are never changed. */
  fixed: object;
}

/** Returns the quirks to change before the request is repeated; null if the error names nothing that can change. */
function quirksAfter(
  { status, error }: { status: number; error: string },
  { body, quirks, usual, fixed }: Refused,
): Partial<Quirks> | null {
  const sent = fieldsOf(body);
  const changes: Partial<Quirks> = {};
  const change = (more: Partial<Quirks> | undefined): void => {
    for (const [name, value] of Object.entries(more ?? {}))
      if (!(name in fixed)) Object.assign(changes, { [name]: value });
  };
  for (const words of statementsOf(error)) {
    const text = words.join(' ');
    if (ROLES.test(text) && quirks.roles !== 'alternating') change({ roles: 'alternating' });
    if (status === TEMPLATE_FAILED) continue;
    if (SCHEMA.test(text) && Array.isArray(body.tools) && quirks.schemas !== 'openapi') change({ schemas: 'openapi' });
    if (/\breasoning(_content)?\b/.test(text) && WANTED.test(text) && quirks.reasoning !== 'all') {
      change({ reasoning: 'all' });
      continue;
    }
    if (!NOT_TAKEN.test(text) || WRONG_VALUE.test(text)) continue;
    for (const field of namedFields(words, sent)) change(CHANGES[field]?.({ ...quirks, ...changes }, usual));
  }
  return Object.keys(changes).length === 0 ? null : changes;
}

/** Returns the fields of the request and of its messages that can be left out or changed. */
function fieldsOf(body: RequestBody): string[] {
  const messages = Array.isArray(body.messages) ? (body.messages as object[]) : [];
  const ofMessages = messages.flatMap((message) => Object.keys(message));
  return [...new Set([...Object.keys(body), ...ofMessages])].filter((field) => field in CHANGES);
}

/** Returns the refused fields: those that are a value of their own (`param`, `loc`), otherwise those that the text names. */
function namedFields(words: readonly string[], sent: readonly string[]): string[] {
  const alone = sent.filter((field) => words.includes(field));
  if (alone.length > 0) return alone;
  const text = words.join(' ');
  return sent.filter((field) => {
    // `temperature` is also an ordinary word.
    const named = field.includes('_') ? `\\b${field}\\b` : `['"\`.\\[]${field}\\b|[:=] ?${field}\\b`;
    return new RegExp(named).test(text) || (field === 'reasoning_effort' && NO_THINKING.test(text));
  });
}

/** Returns the texts of each object in an error, without `input`, which repeats the request. */
function statementsOf(error: string): string[][] {
  const statements: string[][] = [];
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    const entries = Object.entries(value).filter(([name]) => name !== 'input');
    const words = entries.flatMap(([, one]): unknown[] => (Array.isArray(one) ? one : [one])).filter(isWord);
    statements.push(words);
    for (const [, one] of entries) visit(one);
  };
  visit({ error: parsed(error) ?? error });
  return statements;
}

const isWord = (value: unknown): value is string => typeof value === 'string';

function parsed(text: string): unknown {
  try {
    checkShape(text);
    return JSON.parse(text);
  } catch {
    return null;
  }
}
