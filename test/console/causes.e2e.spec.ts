import type { ManagedRun } from '#contract';
import { describeInBrowser } from '#testing';
import { useBrowser } from '../support/browser.ts';
import { createAcknowledged, waitForEntry } from '../support/client.ts';
import { rowOf } from '../support/console-page.ts';
import { endOf, startModelSystem, type ModelSystem } from '../support/model-system.ts';
import { logIn } from '../support/operator.ts';
import { SpoolCommand } from '../support/spool-command.ts';

/** No second attempt. */
const limits = { maxLosses: 1, providerRetryMs: 0 };

/** bulk-retry.e2e.spec.ts tests that one action retries 200 such Runs after the cause is removed. */
describeInBrowser('the person on call, who knows only the id of a customer, sees why the Runs failed', () => {
  const browser = useBrowser();
  let models: ModelSystem;
  beforeAll(async () => {
    models = await startModelSystem({ env: { OLD_KEY: 'revoked', LEASE_MS: '4000' } });
  }, 120_000);
  afterAll(() => models?.stop());

  test('one command and one click show a 503, a 401, the exit status of a tool server and a lost worker', async () => {
    const { system, api } = models;
    const exiting = { name: 'broken', command: process.execPath, args: ['-e', 'process.exit(3)'] };
    const [overloaded, refused, broken, slow] = await Promise.all([
      models.publish('openai-compatible', { name: 'overloaded', limits }),
      models.publish('openai-compatible', { name: 'refused', limits, model: { apiKey: { env: 'OLD_KEY' } } }),
      models.publish('openai-compatible', { name: 'broken', limits, toolServers: [exiting] }),
      models.publish('openai-compatible', { name: 'slow', limits, harness: { name: 'echo' } }),
    ]);
    for (const [caller, text] of [
      [overloaded, 'script: always-overloaded'],
      [refused, 'script: hello'],
      [broken, 'script: hello'],
    ] as const) {
      const { threadId } = await createAcknowledged(caller, text);
      expect(await endOf(caller, threadId)).toMatchObject({ status: 'failed' });
    }
    const { threadId } = await createAcknowledged(slow, '/pause 600s a long story');
    await waitForEntry(slow, threadId, 'agent.message.delta');
    await models.worker.kill('SIGKILL');
    await system.startWorker();
    expect(await endOf(slow, threadId)).toMatchObject({ status: 'failed' });

    const causes = {
      overloaded: /^HTTP 503 from 127\.0\.0\.1:\d+$/,
      refused: /^HTTP 401 from 127\.0\.0\.1:\d+$/,
      broken: /^tool server broken: exit status 3$/,
      slow: /^the worker was lost$/,
    };
    const spool = new SpoolCommand({
      SPOOL_URL: new URL(api.caller.baseUrl).origin,
      SPOOL_TOKEN: system.operatorToken,
    });
    const { out } = await spool.run(['run', 'list', '--user-id', 'tester', '--json']);
    const runs = (JSON.parse(out) as ManagedRun[]).map((run) => [run.agentName, run.cause?.summary]);
    expect(Object.fromEntries(runs)).toEqual(
      Object.fromEntries(Object.entries(causes).map(([name, summary]) => [name, expect.stringMatching(summary)])),
    );

    await browser.visit({ screen: 'wide', baseUrl: api.caller.baseUrl }, async ({ page, look }) => {
      await page.goto('/console/runs?userId=tester');
      await logIn(page, system.operatorToken);
      await rowOf(page, 'Runs', /overloaded/).waitFor();
      await look('runs-of-a-customer');
      for (const [name, cause] of Object.entries(causes)) {
        const row = rowOf(page, 'Runs', new RegExp(`\\b${name}\\b`));
        await row.getByText(cause).waitFor();
        await row.getByRole('link', { name: /^Run / }).click();
        const alert = page.getByRole('alert');
        await alert.getByText(cause).waitFor();
        await alert.getByText('What to do').waitFor();
        await alert.getByText(/^tester of /).waitFor();
        await page.goBack();
      }
      await rowOf(page, 'Runs', /overloaded/)
        .getByRole('link', { name: /^Run / })
        .click();
      await page
        .getByRole('region', { name: 'About this Run' })
        .getByRole('link', { name: 'tester', exact: true })
        .click();
      await page.getByText('4 Runs shown').waitFor();
    });
  }, 180_000);
});
