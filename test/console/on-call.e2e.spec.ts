import type { Locator } from 'playwright-core';
import type { AuditEntry, Overview } from '#contract';
import { describeInBrowser, describeWithRedis, eventually, redisUrl, reportFigure } from '#testing';
import { useBrowser, type Screen, type Visit } from '../support/browser.ts';
import { createAcknowledged, getThread, readLog, send, waitForEntry, type Caller } from '../support/client.ts';
import { say } from '../support/hanging-runs.ts';
import { endOf } from '../support/model-system.ts';
import { addAgent } from '../support/more-agents.ts';
import { agree, logIn, operatorOf, problemOf } from '../support/operator.ts';
import { ScriptedProvider } from '../support/provider/scripted-provider.ts';
import { startSystem, type System } from '../support/system.ts';

/** Something is wrong with a system that has just been started, and somebody opens its console for the first time. */
describeInBrowser('the person on call finds it on the overview and mends it there', () => {
  const browser = useBrowser();

  describeWithRedis('with Redis', () => {
    let provider: ScriptedProvider;
    let system: System;
    let caller: Caller;
    let operator: Caller;

    beforeEach(async () => {
      const isFlaky = { text: ['Well ', 'again.'], failures: [{ error: 'overloaded' as const }] };
      provider = await ScriptedProvider.start({ scripts: { flaky: { steps: [isFlaky] } } });
      system = await startSystem({
        queueUrl: redisUrl().url,
        env: { MODEL_KEY: provider.apiKey, ALLOWED_PRIVATE_ADDRESSES: '127.0.0.1' },
      });
      const api = await system.startApi();
      [caller, operator] = [api.caller, operatorOf(system, api)];
    }, 180_000);

    afterEach(async () => {
      await system.stop();
      await provider.close();
    });

    /** Resolves when the service tells of these, and of nothing else. */
    const areTold = (...kinds: Overview['problems'][number]['kind'][]) =>
      eventually(
        async () => {
          const { body } = await send<{ overview: Overview }>(operator, 'GET', '/overview');
          expect(body.overview.problems.map(({ kind }) => kind).sort()).toEqual(kinds.sort());
          return true;
        },
        { what: `there is ${kinds.join(' and ')}`, timeoutMs: 30_000 },
      );

    /** Of the audit log, newest first. */
    const entriesOf = async (action: string): Promise<AuditEntry[]> => {
      const { body } = await send<{ entries: AuditEntry[] }>(operator, 'GET', `/audit?action=${action}`);
      return body.entries;
    };

    /** Opens the console, signs in, and sees what is wrong at the top of the first page. */
    async function find({ page }: Visit, title: string): Promise<Locator> {
      const openedAt = performance.now();
      await page.goto('/console');
      await logIn(page, system.operatorToken);
      const glance = page.getByRole('navigation', { name: 'Problems at a glance' }).getByRole('link', { name: title });
      await glance.waitFor();
      const tookMs = performance.now() - openedAt;
      reportFigure(`on call: “${title}” is seen ${tookMs.toFixed(0)} ms after the console is opened`);
      expect(await page.title()).toBe('Overview · Spool');
      expect((await glance.boundingBox())!.y).toBeLessThan(page.viewportSize()!.height / 4);
      await glance.click();
      const problem = problemOf(page, title);
      await eventually(async () => (await problem.boundingBox())!.y < page.viewportSize()!.height, {
        what: 'the link leads to the problem',
      });
      return problem;
    }

    const toolEndsOf = async ({ threadId }: { threadId: string }) =>
      (await readLog(caller, threadId)).filter(({ type }) => type === 'tool.use.completed');

    const visit = (screen: Screen, body: (visit: Visit) => Promise<void>) =>
      browser.visit({ screen, baseUrl: caller.baseUrl }, body);

    const isWell = ({ page }: Visit) => page.getByText('No problems:').waitFor();

    test('a Run whose worker was killed, and that cannot come back', async () => {
      // Over, and missed for 5 s, before a worker that is silent counts as dead, which takes 10 s.
      const worker = await system.startWorker({ LEASE_MS: '4000' });
      const { threadId, runId } = await createAcknowledged(caller, '/pause 600s a long story');
      await waitForEntry(caller, threadId, 'agent.message.delta');
      await worker.kill('SIGKILL');
      await areTold('lease_over', 'no_worker');

      await visit('wide', async (visited) => {
        const lost = await find(visited, 'Runs have lost their worker');
        await problemOf(visited.page, 'No worker is alive').waitFor();
        await visited.look('on-call-worker-killed');
        await lost.getByRole('link', { name: 'These Runs' }).click();
        await visited.page.getByText('1 Run shown').waitFor();
        // The filter of the link.
        await visited.page.getByText('Runs have lost their worker').waitFor();
        await visited.page.goBack();
        await lost.getByRole('button', { name: `Cancel Run ${runId}` }).click();
        await agree(visited.page, 'Cancel Run');
        await lost.waitFor({ state: 'detached' });
        const { body } = await getThread(caller, threadId);
        expect(body).toMatchObject({ thread: { status: 'IDLE' }, run: { id: runId, status: 'cancelled' } });
        expect(await entriesOf('run.cancelled')).toMatchObject([{ targetId: runId }]);

        const next = await say(caller, threadId, 'a short one');
        await system.startWorker();
        const completed = { id: next.id, status: 'completed', finalOutput: { text: 'You said: a short one' } };
        expect(await endOf(caller, threadId)).toMatchObject(completed);
        await isWell(visited);
      });
    }, 180_000);

    test('a failed Run, to be retried when the provider is back', async () => {
      const agentId = await addAgent(system, {
        name: 'flaky',
        harness: { name: 'model' },
        model: {
          ...{ provider: 'openai-compatible', name: 'scripted' },
          ...{ baseUrl: provider.openaiUrl, apiKey: { env: 'MODEL_KEY' } },
        },
        limits: { providerRetryMs: 0 },
      });
      await system.startWorker();
      const { threadId, runId } = await createAcknowledged({ ...caller, agentId }, 'script: flaky');
      const error = { code: 'provider_unavailable', retryable: true };
      expect(await endOf(caller, threadId)).toMatchObject({ status: 'failed', error });

      await visit('narrow', async (visited) => {
        const failed = await find(visited, 'Runs failed');
        await failed
          .getByText(/^1 Run of flaky failed: provider_unavailable, HTTP 503 from 127\.0\.0\.1:\d+\. Fix the cause/)
          .waitFor();
        await visited.look('on-call-failed');
        await failed.getByRole('link', { name: 'These Runs' }).click();
        expect(Object.fromEntries(new URL(visited.page.url()).searchParams)).toEqual({
          ...{ scope: 'all', status: 'failed', mayBeRetried: 'true', agentId, errorCode: error.code },
          cause: expect.stringMatching(/^HTTP 503 from 127\.0\.0\.1:\d+$/) as string,
          endedSince: expect.any(String) as string,
        });
        await visited.page.getByText('1 Run shown').waitFor();
        await visited.page.goBack();
        await visited.page.goto(`/console/runs/${runId}`);
        await visited.page
          .getByRole('alert')
          .getByText(/^HTTP 503 from 127\.0\.0\.1:\d+$/)
          .waitFor();
        await visited.look('on-call-cause');
        await visited.page.goBack();
        await failed.getByRole('button', { name: /^Retry it/ }).click();
        await agree(visited.page, 'Retry 1 Run');
        await isWell(visited);
        const { id, ...run } = await endOf(caller, threadId);
        expect(run).toMatchObject({ status: 'completed', finalOutput: { text: 'Well again.' } });
        expect(await entriesOf('run.retried')).toMatchObject([{ targetId: runId, details: { newRunId: id } }]);
      });
    }, 180_000);

    test('Runs that wait for a confirmation, one to be allowed and one to be rejected', async () => {
      await system.startWorker();
      const asking = (text: string) => createAcknowledged(caller, `/confirm ${text}`);
      const [allowed, rejected] = [await asking('yes'), await asking('no')];
      const requests = await Promise.all(
        [allowed, rejected].map(({ threadId }) => waitForEntry(caller, threadId, 'tool.confirmation.required')),
      );

      await visit('narrow', async (visited) => {
        const waiting = await find(visited, 'Runs wait for a person');
        await visited.look('on-call-waiting');
        const answer = async ({ runId }: { runId: string }, name: string): Promise<void> => {
          const asked = waiting.getByRole('row', { name: runId });
          const answers = asked.getByRole('button', { name: new RegExp(`^${name} .*, request `) });
          await answers.click();
          await answers.waitFor({ state: 'detached' });
        };
        await answer(allowed, 'Allow');
        await answer(rejected, 'Reject');
        await isWell(visited);
        for (const { threadId } of [allowed, rejected]) {
          expect(await endOf(caller, threadId)).toMatchObject({ status: 'completed' });
        }
        const ends = await Promise.all([allowed, rejected].map(toolEndsOf));
        expect(ends).toMatchObject([[{ status: 'available' }], [{ status: 'error' }]]);
        expect(await entriesOf('run.confirmation_answered')).toMatchObject([
          { targetId: rejected.runId, details: { requestId: requests[1]!.content, decision: 'reject_once' } },
          { targetId: allowed.runId, details: { requestId: requests[0]!.content, decision: 'allow_once' } },
        ]);
      });
    }, 180_000);

    test('a queue that was paused', async () => {
      await system.startWorker();
      expect((await send(operator, 'POST', '/queue/pause')).status).toBe(200);
      const { threadId, runId } = await createAcknowledged(caller, 'Is anybody there?');

      await visit('wide', async (visited) => {
        const paused = await find(visited, 'The queue is paused');
        await paused.getByText('no Run starts. 1 Run waits.').waitFor();
        expect((await getThread(caller, threadId)).body.run).toMatchObject({ id: runId, status: 'queued' });
        await visited.page.goto(`/console/runs/${runId}`);
        await visited.page.getByText('Ready: the queue is paused').waitFor();
        await visited.page.goBack();
        await paused.getByRole('button', { name: 'Resume the queue' }).click();
        await isWell(visited);
        expect(await endOf(caller, threadId)).toMatchObject({ id: runId, status: 'completed' });
        expect(await entriesOf('queue.resumed')).toHaveLength(1);

        await visited.page.getByRole('button', { name: 'Pause the queue' }).click();
        await agree(visited.page, 'Pause the queue');
        await paused.waitFor();
        expect(await entriesOf('queue.paused')).toHaveLength(2);
      });
    }, 180_000);
  });
});
