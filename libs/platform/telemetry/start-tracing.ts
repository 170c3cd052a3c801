import { context, diag, DiagLogLevel, propagation, trace, type DiagLogger } from '@opentelemetry/api';
import type { Config } from '../process/config.ts';
import type { Logger } from './logger.ts';
import { turnTracingOn } from './tracing.ts';
import { readVersion } from '../process/version.ts';

/** How long a stopping process waits for the collector to accept its last spans. */
const FLUSH_MS = 2_000;
/** The shortest time between two warnings about the collector. */
const SILENCE_MS = 60_000;

export interface Tracing {
  /** Exports the remaining spans, within 2 s. Never rejects. */
  stop(): Promise<void>;
}

type TracingConfig = Pick<
  Config,
  'OTEL_EXPORTER_OTLP_ENDPOINT' | 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT' | 'OTEL_SDK_DISABLED'
>;

/**
 * Enables tracing if a collector is set. Call it before anything else is started. Loads the SDK only if needed, because that
 * takes 60 ms of CPU. The OpenTelemetry packages read other settings (sampler, headers, service name …) from the OTEL_*
 * variables.
 */
export async function startTracing(config: TracingConfig, serviceName: string, logger: Logger): Promise<Tracing> {
  const endpoint = config.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? config.OTEL_EXPORTER_OTLP_ENDPOINT;
  if (endpoint === undefined || config.OTEL_SDK_DISABLED === 'true') return { stop: () => Promise.resolve() };
  const [sdk, exporters, managers, core, resources] = await Promise.all([
    import('@opentelemetry/sdk-trace-base'),
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/context-async-hooks'),
    import('@opentelemetry/core'),
    import('@opentelemetry/resources'),
  ]);
  const sparse = sparseLogger(logger);
  diag.setLogger(sparse, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  core.setGlobalErrorHandler((error) => sparse.warn((error as Error).message));
  const ours = resources.resourceFromAttributes({ 'service.name': serviceName, 'service.version': readVersion() });
  // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence.
  const named = resources.detectResources({ detectors: [resources.envDetector] });
  const provider = new sdk.BasicTracerProvider({
    resource: resources.defaultResource().merge(ours).merge(named),
    spanProcessors: [new sdk.BatchSpanProcessor(new exporters.OTLPTraceExporter())],
  });
  context.setGlobalContextManager(new managers.AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new core.W3CTraceContextPropagator());
  trace.setGlobalTracerProvider(provider);
  turnTracingOn(true);
  logger.info({ endpoint: new URL(endpoint).origin }, 'tracing enabled');
  return { stop: () => stopWithin(provider.shutdown(), sparse) };
}

async function stopWithin(ending: Promise<void>, { warn }: DiagLogger): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, FLUSH_MS);
  });
  await Promise.race([ending.catch(() => warn('the last spans were not exported')), late]);
  clearTimeout(timer);
}

/** Logs the warnings of the OpenTelemetry packages, at most one line a minute. Failed exports stop no work. */
function sparseLogger(logger: Logger): DiagLogger {
  let silentUntil = -Infinity;
  let unsaid = 0;
  const warn = (detail: string): void => {
    unsaid++;
    if (performance.now() < silentUntil) return;
    logger.warn({ detail, times: unsaid }, 'trace export failed; spans may be lost');
    silentUntil = performance.now() + SILENCE_MS;
    unsaid = 0;
  };
  const nothing = (): void => undefined;
  return { error: warn, warn, info: nothing, debug: nothing, verbose: nothing };
}
