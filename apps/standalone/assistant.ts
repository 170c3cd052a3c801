import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { parseManifests, type AgentManifestInput } from '#agents';
import { listsVariable, parseList } from '#platform';
import { exampleFile } from './examples.ts';

type Env = Record<string, string | undefined>;
type Model = NonNullable<AgentManifestInput['model']>;

/** Default models of the hosted providers. */
const HOSTED = { OPENAI_MODEL: 'gpt-5-mini', ANTHROPIC_MODEL: 'claude-sonnet-4-5' };
const LIST_TIMEOUT_MS = 5_000;

/** Thrown if the environment names a provider, but no model can be chosen. `message` is one sentence for the log. */
export class NoModel extends Error {
  override name = 'NoModel';
}

/**
 * Returns the model of the provider in the environment: OPENAI_BASE_URL or OPENAI_API_KEY, else ANTHROPIC_API_KEY; null if none is
 * set. These are the names that the providers' tools use. Without OPENAI_MODEL, takes the first model that the endpoint lists.
 * Throws NoModel.
 */
export async function modelFromEnv(env: Env): Promise<Model | null> {
  const { OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL, ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL, ANTHROPIC_MODEL } = env;
  const from = (baseUrl: string | undefined) => (baseUrl ? { baseUrl: baseUrl.replace(/\/+$/, '') } : {});
  if (OPENAI_BASE_URL || OPENAI_API_KEY) {
    const name =
      OPENAI_MODEL || (OPENAI_BASE_URL ? await firstModel(OPENAI_BASE_URL, OPENAI_API_KEY) : HOSTED.OPENAI_MODEL);
    const apiKey = OPENAI_API_KEY ? { apiKey: { env: 'OPENAI_API_KEY' } } : {};
    return { provider: 'openai-compatible', name, ...from(OPENAI_BASE_URL), ...apiKey };
  }
  if (!ANTHROPIC_API_KEY) return null;
  const name = ANTHROPIC_MODEL || HOSTED.ANTHROPIC_MODEL;
  return { provider: 'anthropic', name, ...from(ANTHROPIC_BASE_URL), apiKey: { env: 'ANTHROPIC_API_KEY' } };
}

/** Throws NoModel if the variable of the model's key is not allowed in manifests. `listed` is the setting MANIFEST_VARIABLES. */
export function requireListedKey({ apiKey }: Model, listed: string): void {
  if (apiKey === undefined || !('env' in apiKey) || listsVariable(parseList(listed), apiKey.env)) return;
  throw new NoModel(`MANIFEST_VARIABLES does not list ${apiKey.env}`);
}

/** Returns the addresses of the providers in the environment. They are allowed even if private, because the operator set them. */
export function providerAddresses({ OPENAI_BASE_URL, ANTHROPIC_BASE_URL }: Env): string[] {
  return [OPENAI_BASE_URL, ANTHROPIC_BASE_URL].flatMap((text) => {
    if (!text || !URL.canParse(text)) return [];
    const { hostname, port, protocol } = new URL(text);
    return [`${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`];
  });
}

/** Returns the manifest of the assistant in examples/agents, with this model. */
export async function assistantManifest(model: Model): Promise<AgentManifestInput> {
  const file = exampleFile('agents/assistant.yaml');
  const [parsed] = parseManifests(await readFile(file, 'utf8'), file).manifests;
  if (parsed === undefined) throw new Error(`${file} contains no manifest`);
  return { ...parsed.manifest, model };
}

const modelList = z.object({ data: z.array(z.object({ id: z.string().min(1) })).min(1) });

async function firstModel(baseUrl: string, apiKey: string | undefined): Promise<string> {
  try {
    const headers = apiKey ? { Authorization: `Bearer ${apiKey}` } : {};
    const signal = AbortSignal.timeout(LIST_TIMEOUT_MS);
    const response = await fetch(`${baseUrl.replace(/\/+$/, '')}/models`, { headers, signal });
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    return modelList.parse(await response.json()).data[0]!.id;
  } catch (error) {
    const why = error instanceof z.ZodError ? 'the response is not a list of models' : (error as Error).message;
    throw new NoModel(`Cannot list the models of OPENAI_BASE_URL (${why}); start that server, or set OPENAI_MODEL.`);
  }
}
