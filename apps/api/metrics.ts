import { WAITS, counter, gauge, histogram } from '#platform';

/** The metrics of the API. docs/operations/metrics.md describes them. */
export const metrics = {
  httpRequests: counter('spool_http_requests_total', 'Completed HTTP requests.', {
    method: null,
    route: null,
    status: null,
  }),
  httpSeconds: histogram(
    'spool_http_request_duration_seconds',
    'Duration in seconds of HTTP requests, from arrival to the last byte of the response, without streamed responses.',
    WAITS,
    { method: null, route: null },
  ),
  httpOpen: gauge('spool_http_requests_open', 'HTTP requests in progress, including open event streams.'),
  bodyBytes: gauge(
    'spool_body_bytes',
    'Bytes of request bodies that this process holds; `BODY_BUDGET_BYTES` limits them.',
  ),
  streamsOpen: gauge('spool_streams_open', 'Open event streams.'),
  rateLimitStoreUp: gauge(
    'spool_rate_limit_store_up',
    '1 if this process counts requests together with the other processes.',
  ),
};

// These gauges count up and down from 0.
for (const gauge of [metrics.httpOpen, metrics.bodyBytes, metrics.streamsOpen]) gauge.set(0);
