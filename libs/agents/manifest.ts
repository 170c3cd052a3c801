import { z } from 'zod';
import { PROVIDER_RETRY_MS, type RunLimits } from '#domain';
import { refuseUnstorable } from './manifest-storable.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const UNITS_MS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 60 * 60_000, d: DAY_MS };

const NOT_A_DURATION = 'must be a number of milliseconds, or a whole number with a unit: 500ms, 30s, 10m, 1h, 7d';
const NOT_A_SECRET = 'must be {env: NAME} or {file: /path}, never the secret itself';
const NOT_TEXT_OR_SECRET = 'must be text, {env: NAME} or {file: /path}; put numbers in quotes';
const NOT_A_SERVER = 'must have either command (stdio) or url (HTTP)';
const NOT_A_URL = 'must be an http or https URL without a user name and password';

/** Headers and variables with such names contain secrets, so their values must be references. */
const SECRET_NAME = /(key|token|secret|password)$|^(proxy-)?authorization$|^cookie$|^x-auth/i;

/** Milliseconds. Owners may write `10m`. */
const duration = z
  .string()
  .regex(/^\d{1,12}(ms|s|m|h|d)$/, NOT_A_DURATION)
  .transform((text) => parseInt(text, 10) * (UNITS_MS[text.replace(/^\d+/, '')] ?? NaN));

const limit = (fallbackMs: number, maxMs: number, minMs = 1) =>
  z
    .union([z.number(), duration], NOT_A_DURATION)
    .pipe(
      z
        .number()
        .int()
        .min(minMs, `must be at least ${minMs}ms`)
        .max(maxMs, `must be at most ${showDuration(maxMs)}`),
    )
    .default(fallbackMs);

/** Returns the duration in the largest unit that gives a whole number. */
function showDuration(ms: number): string {
  const [unit = 'ms', unitMs = 1] = Object.entries(UNITS_MS).findLast(([, unitMs]) => ms % unitMs === 0) ?? [];
  return `${ms / unitMs}${unit}`;
}

const url = z.string().max(2_048).refine(isPlainUrl, NOT_A_URL);
const variableName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,254}$/, 'must be the name of a variable');
const headerName = z.string().regex(/^[\w!#$%&'*+.^`|~-]{1,128}$/, 'must be the name of a header');
/** A text without control characters, so that it cannot end a header, begin another one, or truncate a variable. */
const line = z
  .string()
  .max(8_192)
  .regex(/^\P{Cc}*$/u, 'must not contain line breaks or other control characters');

/** How a map treats unknown fields: the only difference between stored manifests and files. */
type MapOf = <Shape extends z.core.$ZodLooseShape>(shape: Shape) => z.ZodObject<Shape>;

const secretReference = (map: MapOf) =>
  z.union(
    [
      map({ env: variableName }),
      map({
        file: z
          .string()
          .max(4_096)
          .regex(/^\/[^\0]*$/, 'must be an absolute path'),
      }),
    ],
    NOT_A_SECRET,
  );

/** The variables or headers of a tool server, by name. */
const given = (map: MapOf, name: z.ZodString) =>
  z
    .record(name, z.union([line, secretReference(map)], NOT_TEXT_OR_SECRET))
    .superRefine(refuseLiteralSecrets, { when: () => true })
    .refine((entries) => Object.keys(entries).length <= 100, 'must have at most 100 entries')
    .default({});

const toolPattern = z.string().min(1).max(255);

const toolServers = (map: MapOf) => {
  const common = {
    /** Unique in the manifest. */
    name: z.string().regex(/^[a-z0-9-]{1,40}$/, 'must be 1 to 40 characters: a to z, 0 to 9 and hyphens'),
    /** Whether the agent needs it to run. */
    required: z.boolean().default(true),
    /** How long its start and the reading of its list of tools may take together, milliseconds. */
    startMs: limit(20_000, 10 * 60_000),
    /** How long one of its calls may take, milliseconds. */
    timeoutMs: limit(60_000, DAY_MS),
    /** Tools that may run twice with one `toolCallId`, besides those that declare it. Patterns of the server's own names. */
    idempotent: z.array(toolPattern).max(1_000).default([]),
  };
  const stdio = map({
    ...common,
    /** A program of the worker's machine, started without a shell. */
    command: z.string().min(1).max(4_096),
    args: z.array(z.string().max(8_192)).max(100).default([]),
    env: given(map, variableName),
    /** Whether it may use the network of the worker's machine. The installation must allow that. */
    network: z.boolean().default(false),
  });
  const http = map({ ...common, url, headers: given(map, headerName) });
  return z
    .array(z.union([stdio, http], NOT_A_SERVER))
    .max(100)
    .superRefine(refuseSameNames, { when: () => true })
    .default([]);
};

const price = z.number().min(0).max(1_000_000);

/** How requests to an `openai-compatible` server differ. Defaults come from the profile of its host (docs/models.md). */
const quirks = (map: MapOf) =>
  map({
    /** Fields that are never sent. */
    leaveOut: z
      .array(z.enum(['stream_options', 'parallel_tool_calls', 'reasoning_effort', 'temperature']))
      .max(10)
      .optional(),
    /** The field that limits an answer. */
    answerLimit: z.enum(['max_tokens', 'max_completion_tokens', 'none']).optional(),
    /** Which messages may follow one another. */
    roles: z.enum(['stored', 'merged', 'alternating']).optional(),
    /** Ids of tool calls: nine letters and digits, or as they are stored. */
    callIds: z.enum(['short', 'stored']).optional(),
    /** Which messages are sent with their reasoning. */
    reasoning: z.enum(['none', 'turn', 'all']).optional(),
    /** The format of tool schemas: JSON Schema, or the subset of OpenAPI 3.0 that Gemini accepts. */
    schemas: z.enum(['json-schema', 'openapi']).optional(),
  });

/** Which model runs the agent, for harnesses that use one. */
const model = (map: MapOf) =>
  map({
    provider: z.enum(['openai-compatible', 'anthropic']),
    /** The provider's name of the model. */
    name: z.string().min(1).max(255),
    /** The address of the provider. Default: the usual one. */
    baseUrl: url.optional(),
    apiKey: secretReference(map).optional(),
    /** Settings that are not given have the provider's defaults. */
    settings: map({
      temperature: z.number().min(0).max(2).optional(),
      maxOutputTokens: z.number().int().min(1).max(1_000_000).optional(),
      /** The most thinking tokens (anthropic). Without it, the model does not think. */
      thinkingTokens: z.number().int().min(1_024).max(1_000_000).optional(),
      /** How much it thinks (openai-compatible). */
      reasoningEffort: z.enum(['minimal', 'low', 'medium', 'high']).optional(),
    }).optional(),
    quirks: quirks(map).optional(),
    /** The model's window, tokens of input and output together. Default: that of the provider's usual models. */
    contextTokens: z.number().int().min(1_000).max(10_000_000).optional(),
    /** Whether it accepts images. Default: only with anthropic. */
    images: z.boolean().optional(),
    /** How long the provider may send nothing before its call is cancelled, milliseconds. */
    silenceMs: limit(2 * 60_000, DAY_MS),
    /** The cost of a million tokens, in the currency of `limits.maxCost`. */
    prices: map({
      input: price,
      output: price,
      /** The price of cached input. Default: that of other input. */
      cachedInput: price.optional(),
    }).optional(),
  });

/** Time limits in milliseconds (docs/spec/decisions.md#time-limits), and the most losses and steps of a Run. */
const limits = (map: MapOf) =>
  map({
    /** Time in the queue, waiting for a free worker. */
    queueMs: limit(10 * 60 * 1000, 7 * DAY_MS),
    /** Working time of all claims of a Run together. */
    workMs: limit(60 * 60 * 1000, 7 * DAY_MS),
    /** Time waiting for a person. */
    waitMs: limit(7 * DAY_MS, 365 * DAY_MS),
    /** Lost workers in a row, or retryable failures of other parts than the model provider, that fail the Run. */
    maxLosses: z.number().int().min(1).max(100).default(3),
    /** How long a model provider that is unavailable, overloaded or limits its callers is tried again; 0: not at all. */
    providerRetryMs: limit(PROVIDER_RETRY_MS, 7 * DAY_MS, 0),
    /** Model calls of one Run. Tool calls do not count; a step has at most 1,000. */
    maxSteps: z.number().int().min(1).max(10_000).default(100),
    /** Tokens of one Run, input and output of all its steps: no step begins once they are used up. */
    maxTokens: z.number().int().min(1).max(1_000_000_000).optional(),
    /** The same for their cost by `model.prices`. */
    maxCost: z.number().positive().max(1_000_000).optional(),
  });

const manifest = (map: MapOf) =>
  map({
    name: z.string().min(1).max(255),
    description: z.string().max(4_000).default(''),
    kind: z.enum(['pet', 'cattle']).default('cattle'),
    /** Which harness runs the agent, and that harness's own settings (`Harness.checkSettings`). */
    harness: z.looseObject({ name: z.string().min(1) }),
    /** The system prompt of the model. */
    instructions: z.string().max(100_000).default(''),
    model: model(map).optional(),
    /** Models that make a step while the provider of `model` is unavailable, overloaded or limits its callers, in this order. */
    fallbackModels: z.array(model(map)).min(1).max(5).optional(),
    /** MCP servers whose tools the agent may use. */
    toolServers: toolServers(map),
    /** Which tools may run. The first pattern that matches decides, else the tool's default. `*` matches any characters. */
    tools: z
      .array(map({ pattern: toolPattern, policy: z.enum(['allow', 'ask', 'deny']) }))
      .max(1_000)
      .default([]),
    limits: limits(map).prefault({}),
    /** What a message does while a Run of its Thread is active (docs/spec/decisions.md#when-busy). */
    whenBusy: z.enum(['reject', 'enqueue', 'interrupt']).default('reject'),
    /** `runs`: how many Runs of the agent may be executed at once. The value of the live version applies (docs/adr/0012). */
    concurrency: map({ runs: z.number().int().min(1).max(10_000) }).optional(),
  });

/**
 * The manifest of an agent version, stored with its defaults and never changed. Unknown fields are stripped, so that this release
 * can read manifests that the next one wrote.
 */
export const agentManifestSchema = manifest(z.object);

/** The manifest as owners write it. An unknown field is an error, and so is text that PostgreSQL cannot store. */
export const manifestFileSchema = manifest(z.strictObject)
  .refine(({ limits, model }) => limits.maxCost === undefined || model?.prices !== undefined, {
    path: ['limits', 'maxCost'],
    error: 'needs model.prices',
  })
  .refine(
    ({ limits, fallbackModels = [] }) => limits.maxCost === undefined || fallbackModels.every(({ prices }) => prices),
    { path: ['limits', 'maxCost'], error: 'needs the prices of each of the fallbackModels' },
  )
  .superRefine(refuseUnstorable, { when: () => true });

export type AgentManifest = z.infer<typeof agentManifestSchema>;
/** A manifest as owners write it. Fields with defaults are optional. */
export type AgentManifestInput = z.input<typeof agentManifestSchema>;

/** The place of a secret: a variable of the process, or a file. */
export type SecretReference = z.infer<ReturnType<typeof secretReference>>;

/** Returns the part of an agent's limits that each of its Runs keeps. */
export function runLimits({ limits }: Pick<AgentManifest, 'limits'>): RunLimits {
  const { queueMs, workMs, waitMs, maxLosses, providerRetryMs } = limits;
  return { queueMs, workMs, waitMs, maxLosses, providerRetryMs };
}

function isPlainUrl(text: string): boolean {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  return username === '' && password === '';
}

/** Runs even if there are other problems, because all are reported at once. So it cannot trust the types. */
function refuseLiteralSecrets(entries: Record<string, unknown>, context: z.RefinementCtx): void {
  for (const [name, value] of Object.entries(entries ?? {}))
    if (typeof value === 'string' && SECRET_NAME.test(name))
      context.addIssue({ code: 'custom', path: [name], message: NOT_A_SECRET });
}

/** Runs even if there are other problems, too. */
function refuseSameNames(servers: { name: string }[], context: z.RefinementCtx): void {
  if (!Array.isArray(servers)) return;
  const names = servers.map((server: { name?: unknown } | null) => server?.name);
  for (const [i, name] of names.entries())
    if (typeof name === 'string' && names.indexOf(name) < i)
      context.addIssue({ code: 'custom', path: [i, 'name'], message: 'must be unique' });
}
