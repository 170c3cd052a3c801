import type { RunErrorCode } from '#domain';
import { LONG, counter, histogram, timed } from '#platform';
import type { ModelChoice } from './model-settings.ts';

const PROVIDERS: readonly ModelChoice['provider'][] = ['anthropic', 'openai-compatible'];

/** The errors that calls of providers end with (provider-errors.ts). */
const FAILURES: readonly RunErrorCode[] = [
  ...(['provider_unavailable', 'provider_rate_limited', 'provider_rejected', 'provider_quota_exhausted'] as const),
  ...(['provider_auth', 'content_filtered', 'context_too_long'] as const),
];

/** The metrics of model providers. docs/operations/metrics.md describes them. */
export const metrics = {
  providerRequests: counter('spool_provider_requests_total', 'Requests to model providers, by outcome.', {
    provider: PROVIDERS,
    outcome: ['ok', 'stopped', ...FAILURES],
  }),
  providerSeconds: histogram(
    'spool_provider_request_duration_seconds',
    'Duration in seconds of requests to model providers, to the end of the response.',
    LONG,
    { provider: PROVIDERS },
  ),
  providerOddities: counter(
    'spool_provider_oddities_total',
    'Deviations of model providers from their protocol, and parts of requests that they rejected.',
    { provider: PROVIDERS, kind: ['frame', 'part', 'field', 'number', 'end', 'refused'] },
  ),
};

/** Starts to time the call of a provider. Call the returned function with `ok`, `stopped` or the code of the Run's error. */
export function countProviderCall(provider: string): (outcome: string) => void {
  return timed((outcome: string, seconds) => {
    metrics.providerRequests.inc({ provider, outcome });
    metrics.providerSeconds.observe({ provider }, seconds);
  });
}
