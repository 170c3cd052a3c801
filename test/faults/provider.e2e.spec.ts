import { readFileSync, writeFileSync } from 'node:fs';
import type { AgentManifestInput } from '#agents';
import { reportFigure } from '#testing';
import { expectHealthy, lastMessage } from '../support/checks.ts';
import { createAcknowledged, readLog, type Acknowledged, type Caller, type LogEntry } from '../support/client.ts';
import {
  endOf,
  PROTOCOLS,
  startModelSystem,
  usagesOf,
  type EndedRun,
  type ModelSystem,
  type ProtocolName,
} from '../support/model-system.ts';
import { KB, ProcessGauge } from '../support/process-gauge.ts';
import { everythingOverHttp, oddServer, oddServerOverHttp, type ListeningServer } from '../support/tool-servers.ts';

const MB = KB * KB;
/** How long a provider may say nothing, where that is what goes wrong; long enough for one that answers at once. */
const SILENCE_MS = 1_500;
/** How much more memory a worker may take at its most for 100 MB of output, and how much of it may stay in use. */
const MOST_BYTES = 128 * MB;
const LEFT_BYTES = 16 * MB;

const USED = { inputTokens: 10, outputTokens: 5 };

interface Fault {
  /** What the provider does, as its script in test/support/provider/scripts says. */
  script: string;
  /** The error's code, or the text of the answer in the end. */
  fails?: string;
  retryable?: boolean;
  says?: string;
  limits?: AgentManifestInput['limits'];
  /** How many requests it has seen. */
  requests: number;
  /** What the provider had said of each answer when it was cut off. */
  cut?: string[];
  /** How long after a request the next one comes at the earliest, milliseconds. */
  apart?: number[];
  usages?: object[];
}

const FAULTS: Fault[] = [
  { script: 'rate-limited', says: 'Sorry for the wait.', requests: 3, cut: ['', ''], apart: [1_000, 1_000] },
  { script: 'told-to-wait', says: 'I was told when.', requests: 3, cut: ['', ''], apart: [2_000, 2_500] },
  { script: 'overloaded', says: 'There was a lot to do.', requests: 3, cut: ['', 'There was '] },
  {
    ...{ script: 'always-overloaded', fails: 'provider_unavailable', retryable: true },
    ...{ limits: { providerRetryMs: 0 }, requests: 1 },
  },
  { script: 'server-error', says: 'It was not me.', requests: 2, cut: [''] },
  { script: 'hangs', says: 'Where was I?', requests: 3, cut: ['', 'Where '], apart: [SILENCE_MS, SILENCE_MS] },
  { script: 'reset', says: 'We were cut off.', requests: 3, cut: ['We were cut ', 'We were cut off.'] },
  {
    script: 'cut-after-tools',
    says: 'It said Echo: once',
    requests: 4,
    cut: ['It said ', 'It said Echo: once'],
    usages: [
      { inputTokens: 70, outputTokens: 7 },
      { inputTokens: 90, outputTokens: 9 },
    ],
  },
  {
    script: 'broken-json',
    says: 'It was: The tool was not run. The input must be a JSON object (at most 50,000 parts and 128 levels). The input begins: {"message": "half of',
    requests: 2,
    usages: [USED, USED],
  },
  { script: 'html', fails: 'provider_rejected', requests: 1 },
  { script: 'unauthorized', fails: 'provider_auth', requests: 1 },
  { script: 'no-quota', fails: 'provider_quota_exhausted', requests: 1 },
  { script: 'too-long', fails: 'context_too_long', requests: 1 },
  { script: 'refused-midway', fails: 'provider_rejected', requests: 1 },
  { script: 'content-filter', fails: 'content_filtered', requests: 1 },
];

/**
 * F20 (docs/reliability.md#faults): what providers and tool servers do wrong. All at once, because most of it is
 * waiting.
 */
describe('F20: a provider', () => {
  let models: ModelSystem;
  let everything: ListeningServer;
  let odd: ListeningServer;
  const begun = new Map<string, Promise<{ caller: Caller; told: Acknowledged }>>();

  const lineOf = (protocol: ProtocolName, script: string): string => `script: ${script} by ${protocol}`;

  async function begin(
    protocol: ProtocolName,
    { script, limits = {} }: Fault,
  ): Promise<{ caller: Caller; told: Acknowledged }> {
    const caller = await models.publish(protocol, {
      limits,
      model: script === 'hangs' ? { silenceMs: SILENCE_MS } : {},
      toolServers: [{ name: 'everything', url: everything.url }],
    });
    return { caller, told: await createAcknowledged(caller, lineOf(protocol, script)) };
  }

  beforeAll(async () => {
    [everything, odd] = await Promise.all([everythingOverHttp(), oddServerOverHttp()]);
    models = await startModelSystem({ env: ProcessGauge.env });
    for (const protocol of PROTOCOLS)
      for (const fault of FAULTS) begun.set(lineOf(protocol, fault.script), begin(protocol, fault));
    await Promise.all(begun.values());
  }, 120_000);

  afterAll(async () => {
    await expectHealthy(models.system.database);
    await models.stop();
    await Promise.all([everything.close(), odd.close()]);
  });

  describe.each(PROTOCOLS)('of %s', (protocol) => {
    test.each(FAULTS)('$script', async ({ script, fails, retryable = false, says, ...expected }) => {
      const line = lineOf(protocol, script);
      const { caller, told } = await begun.get(line)!;
      const run = await endOf(caller, told.threadId);
      const log = await readLog(caller, told.threadId);
      expect(outcomeOf(run)).toEqual(
        fails === undefined ? { status: 'completed', says } : { status: 'failed', code: fails, retryable },
      );

      const requests = models.requestsOf(line);
      expect(requests.map(({ refusal }) => refusal)).toEqual(Array(expected.requests).fill(null));
      const apart = requests.slice(1).map(({ openedAt }, i) => openedAt - requests[i]!.openedAt);
      for (const [i, ms] of (expected.apart ?? []).entries()) expect(apart[i]).toBeGreaterThanOrEqual(ms);
      expectVoided(log, run, expected.cut);
      expect(usagesOf(log)).toEqual(expected.usages ?? (fails === undefined ? [USED] : []));
      // What was stored before a cut is not done again.
      const tools = log.filter(({ type }) => type === 'tool.use.started');
      expect(tools).toHaveLength(script === 'cut-after-tools' ? 1 : 0);
    });
  });

  const outcomeOf = ({ status, error, finalOutput }: EndedRun): object =>
    error === null
      ? { status, says: finalOutput?.text }
      : { status, code: error.code, retryable: error.retryable, ...(finalOutput && { finalOutput }) };

  /** A mark for each answer that was cut off. Before it stands how the answer began: what still gathered is not shown. */
  function expectVoided(log: LogEntry[], { status, finalOutput }: EndedRun, cut: string[] = []): void {
    if (status !== 'completed') return;
    const shown = [''];
    for (const { type, content } of log) {
      if (type === 'session.status' && content === 'RESCHEDULING') shown.push('');
      else if (type.startsWith('tool.')) shown[shown.length - 1] = '';
      else if (type === 'agent.message.delta') shown[shown.length - 1] += content;
    }
    expect(shown).toHaveLength(cut.length + 1);
    // Of a reset not even that is sure to arrive.
    for (const [i, said] of cut.entries()) expect(said.slice(0, shown[i]!.length)).toBe(shown[i]);
    expect(shown.slice(0, -1).join('') === '').toBe(cut.join('') === '');
    expect(shown.at(-1)).toBe(finalOutput!.text);
    expect(lastMessage(log)).toBe(finalOutput!.text);
  }

  // Last, when nothing else takes memory: tests of a `describe` come before those of the ones within it.
  describe('and a tool', () => {
    test.each([
      ['stdio', () => oddServer().input],
      ['HTTP', () => ({ name: 'odd', url: odd.url })],
    ])('with 100 MB of output over %s', async (over, server) => {
      const gauge = new ProcessGauge(models.worker);
      const { live, bytes } = await gauge.measure();
      forgetMost(models.worker.pid);
      const caller = await models.publish('anthropic', {
        toolServers: [server()],
        tools: [{ pattern: '*', policy: 'allow' }],
      });
      const line = `script: large-results over ${over}`;
      const { threadId } = await createAcknowledged(caller, line);
      expect(outcomeOf(await endOf(caller, threadId))).toEqual({ status: 'completed', says: 'That was a lot.' });
      const took = mostResident(models.worker.pid) - bytes;
      const left = (await gauge.measure()).live - live;
      reportFigure(`F20, ${over}: at most ${toMb(took)} MB more, ${toMb(left)} MB of it stays`);

      const asked = models.requestsOf(line).map(({ body }) => JSON.stringify(body));
      expect(asked).toHaveLength(3);
      expect(asked[1]).toContain(
        'The tool server sent too much: a result of more than 16 MiB, or too many parts or messages.',
      );
      expect(asked[2]).toContain('xxxxxxxx');
      expect(asked[2]!.length).toBeLessThan(2 * MB);
      const log = await readLog(caller, threadId);
      const results = log.filter(({ type }) => type === 'tool.use.completed');
      expect(results.map(({ status }) => status)).toEqual(['error', 'available']);
      expect(Math.max(...results.map(({ content }) => Buffer.byteLength(content)))).toBeLessThanOrEqual(2 * KB);
      expect(took).toBeLessThan(MOST_BYTES);
      expect(left).toBeLessThan(LEFT_BYTES);
    });
  });
});

/** From now on `mostResident` counts. */
const forgetMost = (pid: number): void => writeFileSync(`/proc/${pid}/clear_refs`, '5');

/** The most that was ever resident of a process, bytes. */
function mostResident(pid: number): number {
  const [, kilobytes] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))!;
  return Number(kilobytes) * KB;
}

const toMb = (bytes: number): string => (bytes / MB).toFixed(1);
