import { fitRequest, REASONING_FIELD } from './fit-request.ts';
import type { ModelChoice } from './model-settings.ts';
import { manifestWith } from './provider.testing.ts';
import { quirksOf, type Quirks } from './server-profiles.ts';

const usual = quirksOf(manifestWith({ baseUrl: 'http://127.0.0.1/v1' }).model as ModelChoice);
const fit = (body: Record<string, unknown>, quirks: Partial<Quirks> = {}) => fitRequest(body, { ...usual, ...quirks });
const calls = { role: 'assistant', tool_calls: [{ id: 'a' }] };

it.each<[body: Record<string, unknown>, quirks: Partial<Quirks>, sent: Record<string, unknown>]>([
  [{ max_tokens: 1 }, {}, { max_tokens: 1 }],
  [{ max_tokens: 1 }, { answerLimit: 'max_completion_tokens' }, { max_completion_tokens: 1 }],
  [{ max_completion_tokens: 1 }, {}, { max_tokens: 1 }],
  [{ max_tokens: 1 }, { answerLimit: 'none' }, {}],
  [{ temperature: 1, model: 'm' }, { leaveOut: ['temperature'] }, { model: 'm' }],
  [
    { messages: [{ role: 'tool' }, { role: 'tool' }, { role: 'user' }] },
    { roles: 'alternating' },
    { messages: [{ role: 'tool' }, { role: 'tool' }, { role: 'assistant', content: 'Understood.' }, { role: 'user' }] },
  ],
  [{ messages: [{ role: 'tool' }, { role: 'user' }] }, {}, { messages: [{ role: 'tool' }, { role: 'user' }] }],
  [{ messages: [calls] }, { reasoning: 'all' }, { messages: [{ ...calls, reasoning_content: '' }] }],
  [{ messages: [{ role: 'assistant' }] }, { reasoning: 'all' }, { messages: [{ role: 'assistant' }] }],
  [{ messages: [{ ...calls, reasoning: 'Hm' }] }, { reasoning: 'none' }, { messages: [calls] }],
  [
    { messages: [{ ...calls, reasoning_content: 'Hm', [REASONING_FIELD]: 'reasoning' }] },
    {},
    { messages: [{ ...calls, reasoning: 'Hm' }] },
  ],
  [
    { messages: [{ ...calls, reasoning_content: 'Hm', [REASONING_FIELD]: 'reasoning_content' }] },
    {},
    { messages: [{ ...calls, reasoning_content: 'Hm' }] },
  ],
  [
    { tools: [{ type: 'function', function: { name: 'a', parameters: { type: 'object', properties: {} } } }] },
    { schemas: 'openapi' },
    { tools: [{ type: 'function', function: { name: 'a' } }] },
  ],
])('rewrites %j with %j to what the server accepts, idempotently', (body, quirks, sent) => {
  expect(fit(body, quirks)).toEqual(sent);
  expect(fit(fit(body, quirks), quirks)).toEqual(sent);
});
