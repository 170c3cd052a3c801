import { z } from 'zod';
import type { ThreadEventInput } from './compatibility.ts';
import { components } from './components.ts';
import { LIMITS } from './requests.ts';
import { dateTime, list, text, ulid } from './scalars.ts';

/** The rights that a browser token can have, with their meanings. */
export const VERBS = {
  read: 'read Threads, events, Runs and files, and follow streams',
  send: 'create Threads and send messages, also with drafts of the user as attachments; interrupt and retry Runs',
  decide: 'allow or reject tool calls',
  upload: 'upload drafts, and add files to a Thread outside of messages',
  manage: 'set titles, archive and delete Threads, and delete files',
} as const;
export type Verb = keyof typeof VERBS;
const verbs = Object.keys(VERBS) as [Verb, ...Verb[]];

/** The verb that each event of a batch needs. */
export const EVENT_VERBS = {
  user_message: 'send',
  user_interrupt: 'send',
  permission_decision: 'decide',
} as const satisfies Record<ThreadEventInput['type'], Verb>;

const MIN_SECONDS = 60;
const MAX_SECONDS = 3_600;
export const BROWSER_TOKEN_SECONDS = 900;
const VALIDITY = `must be from ${MIN_SECONDS} to ${MAX_SECONDS}`;
const MAX_ORIGINS = 10;

/** An origin as browsers send it (RFC 6454, section 6.2). An app in a browser shell can have its own scheme. */
const origin = z
  .string()
  .max(255, 'must have at most 255 characters')
  .regex(
    /^[a-z][a-z0-9+.-]*:\/\/(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?$/,
    'must be an origin, such as https://a.example',
  )
  .refine((text) => !/^(?:https:.*:443|http:.*:80)$/.test(text), 'must omit the default port, as browsers do')
  .meta({ description: 'Such as `https://app.example.com`: scheme, host and port if it is not the default; no path.' });

export const createBrowserTokenBody = z
  .strictObject({
    userId: text(1, LIMITS.userId).meta({
      description: 'The user who gets the token, as in the `userId` of Threads.',
    }),
    agentId: ulid
      .optional()
      .meta({ description: 'The only Agent that it may use. If omitted: all of the service token.' }),
    threadId: ulid.optional().meta({
      description: 'The only Thread that it may use. It must be a Thread of the user. If omitted: all of the user.',
    }),
    verbs: list(z.enum(verbs), 1, verbs.length).meta({
      description: `The verbs that it allows. ${Object.entries(VERBS)
        .map(([verb, meaning]) => `\`${verb}\`: ${meaning}.`)
        .join(' ')}`,
    }),
    expiresInSeconds: z
      .int('must be a whole number')
      .min(MIN_SECONDS, VALIDITY)
      .max(MAX_SECONDS, VALIDITY)
      .optional()
      .meta({
        description: `How long it is valid; ${BROWSER_TOKEN_SECONDS} if omitted. Create another one before it expires.`,
      }),
    origins: list(origin, 1, MAX_ORIGINS)
      .optional()
      .meta({ description: 'The origins of the pages that may use it. If omitted: all.' }),
  })
  .meta({ description: 'The rights of a new browser token.' })
  .register(components, { id: 'CreateBrowserToken' });

export const browserTokenAnswer = z
  .strictObject({
    token: z.string().meta({ description: 'Sent as `Authorization: Bearer …`. Starts with `spool_bt_`. Not stored.' }),
    expiresAt: dateTime.meta({ description: 'From then on, requests return 401 with the reason `token_expired`.' }),
  })
  .meta({ description: 'A browser token.' })
  .register(components, { id: 'BrowserTokenAnswer' });
export type BrowserTokenAnswer = z.output<typeof browserTokenAnswer>;

export const fileLinkAnswer = z
  .strictObject({
    url: z.url().meta({ description: 'Works without a token, for this file only. Treat it like a password.' }),
    expiresAt: dateTime.meta({
      description: 'Five minutes later, or the end of the browser token if that is earlier.',
    }),
  })
  .meta({ description: 'A link to the bytes of a file.' })
  .register(components, { id: 'FileLinkAnswer' });
export type FileLinkAnswer = z.output<typeof fileLinkAnswer>;
