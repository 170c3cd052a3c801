import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { describeInBrowser, eventually, redisUrl } from '#testing';
import { createAcknowledged, getThread, readLog } from '../support/client.ts';
import { button, pressAndAgree, rowOf, told, useConsole } from '../support/console-page.ts';
import { startConsoleWorld, type ConsoleWorld } from '../support/console-world.ts';
import { addAgent } from '../support/more-agents.ts';

/** A Run that goes on for hours. */
const ENDLESS = '/pause 1s /pieces 9999 Count the stars';

describeInBrowser('what operators do in the console', () => {
  let world: ConsoleWorld;
  const { visit, visitSignedOut } = useConsole(() => world);

  beforeAll(async () => {
    world = await startConsoleWorld(redisUrl().url);
  }, 120_000);
  afterAll(() => world?.stop());

  /** Who did what, newest first, to this target. */
  const auditOf = async (targetId: string): Promise<{ action: string; details: Record<string, unknown> }[]> =>
    (await world.admin<{ entries: never[] }>('GET', `/audit?targetId=${targetId}`)).entries;

  describe('to get in and out', () => {
    const field = (page: Page) => page.getByRole('textbox', { name: 'Operator token' });
    const sessions = async (): Promise<number> =>
      (await world.database.pool.query('select from operator_sessions')).rowCount!;

    test('sign in leads back to the page that was asked for; a menu leads on; sign out ends the session', () =>
      visitSignedOut('narrow', async ({ page, open, allow, look }) => {
        const before = await sessions();
        await open('/runs?scope=all');
        await field(page).fill('spool_op_wrong');
        allow(/401.*\/console\/session/);
        await button(page, 'Sign in').click();
        expect(await page.getByRole('alert').innerText()).toMatch(/Not an operator token/);
        // How that looks: sessions.e2e.spec.ts.
        await field(page).fill(world.operatorToken);
        await page.keyboard.press('Enter');
        await page.getByRole('heading', { name: 'Runs' }).waitFor();
        expect([new URL(page.url()).pathname + new URL(page.url()).search, await sessions()]).toEqual([
          '/console/runs?scope=all',
          before + 1,
        ]);

        await button(page, 'Navigation').click();
        await look('menu');
        await page.getByRole('link', { name: 'Threads' }).click();
        await page.getByRole('heading', { name: 'Threads' }).waitFor();
        await page.getByRole('link', { name: 'Tokens' }).waitFor({ state: 'hidden' });

        await button(page, /^Account/).click();
        await page.getByRole('menuitem', { name: 'Sign out' }).click();
        await field(page).waitFor();
        expect([await sessions(), await page.context().cookies()]).toEqual([before, []]);
      }));

    test('the colours that were chosen stay', () =>
      visit('wide', async ({ page, open }) => {
        const scheme = () => page.locator('html').getAttribute('data-mantine-color-scheme');
        await open('/threads');
        for (const [name, chosen] of Object.entries({ Dark: 'dark', Light: 'light' })) {
          await button(page, /^Account/).click();
          await page.getByRole('menuitemradio', { name }).click();
          await eventually(async () => (await scheme()) === chosen, { what: `it is ${chosen}` });
          await open('/threads');
          expect(await scheme()).toBe(chosen);
        }
      }));
  });

  describe('with Runs', () => {
    test('cancel one of the list, unless they go back, and retry it on its page', () =>
      visit('narrow', async ({ page, open, look }) => {
        const { runId, threadId } = await world.begin(ENDLESS, 'running');
        await open('/runs');
        // On a phone, a button opens the filters, and cards have no empty values.
        const status = page.getByRole('search', { name: 'Filter Runs' }).getByText('Status');
        await status.waitFor({ state: 'hidden' });
        await button(page, 'Filters').click();
        await status.waitFor();
        await button(page, 'Filters').click();
        const card = rowOf(page, 'Runs', new RegExp(runId));
        await card.locator('td[data-label="Agent"]').waitFor();
        await card.locator('td[data-label="Error"]').waitFor({ state: 'hidden' });
        await button(page, `Cancel Run ${runId}`).click();
        await look('confirm');
        await button(page.getByRole('dialog'), 'Keep Run').click();
        await page.getByRole('dialog').waitFor({ state: 'detached' });
        await page.getByRole('link', { name: runId }).click();
        await page.getByRole('heading', { name: 'Run of echo' }).waitFor();
        await button(page, `Cancel Run ${runId}`).click();
        await page.getByRole('dialog').waitFor();
        await page.goBack();
        await page.getByRole('dialog').waitFor({ state: 'detached' });
        await page.getByRole('heading', { name: 'Runs', exact: true }).waitFor();
        expect(await world.statusOf(runId)).toBe('running');
        await pressAndAgree(page, `Cancel Run ${runId}`, 'Cancel Run');
        await told(page, /is cancelled\./);
        // It stays while the pointer is on the list.
        await page.mouse.move(0, 0);
        await rowOf(page, 'Runs', new RegExp(runId)).waitFor({ state: 'detached' });
        expect(await world.statusOf(runId)).toBe('cancelled');

        await open(`/runs/${runId}`);
        await button(page, `Retry Run ${runId}`).click();
        await told(page, /is retried as Run/);
        const { run } = (await getThread(world.caller, threadId)).body;
        expect(run!.id).not.toBe(runId);
        expect((await auditOf(runId)).map(({ action }) => action)).toEqual(['run.retried', 'run.cancelled']);
        await page.getByRole('link', { name: run!.id }).click();
        await pressAndAgree(page, `Cancel Run ${run!.id}`, 'Cancel Run');
        await told(page, /is cancelled\./);
        expect(await world.statusOf(run!.id)).toBe('cancelled');
      }));

    test('allow and reject what a tool asks', () =>
      visit('narrow', async ({ page, open }) => {
        const { runId, threadId } = await world.begin('/confirm 2 Write to Ann', 'waiting_input');
        // On a phone, each value has the name of its column.
        await open(`/runs/${runId}`);
        await page.locator('td[data-label="Tool"]').getByText('Send a note').first().waitFor();
        await open('/confirmations');
        const answers = (name: RegExp) =>
          page
            .getByRole('table', { name: 'Confirmations' })
            .getByRole('row', { name: runId })
            .getByRole('button', { name });
        await button(page, `Allow all 2 of this Run Run ${runId}`).waitFor();
        await answers(/^Allow Send/)
          .first()
          .click();
        await told(page, 'Allowed: Send a note.');
        await answers(/^Reject /)
          .nth(1)
          .waitFor({ state: 'detached' });
        await answers(/^Reject /).click();
        await answers(/^Reject /).waitFor({ state: 'detached' });
        await eventually(async () => (await world.statusOf(runId)) === 'completed', { what: 'the Run goes on' });
        // The text comes in pieces, which have its line breaks.
        const said = (await readLog(world.caller, threadId)).map(({ content }) => content).join('');
        expect(said).toMatch(/send_note \(ok\): .*\nsend_note \(refused\): /);
        expect((await auditOf(runId)).map(({ action, details }) => [action, details['decision']])).toEqual([
          ['run.confirmation_answered', 'reject_once'],
          ['run.confirmation_answered', 'allow_once'],
        ]);
      }));

    test('retry and cancel all that match, after a question with their number', () =>
      visit('narrow', async ({ page, open, look }) => {
        const begin = (text: string, status: 'failed' | 'running') =>
          Promise.all([1, 2, 3].map((i) => world.begin(`${text} ${i}`, status)));
        const failed = await begin('/fail-retryable Where are they?', 'failed');
        await world.admin('POST', `/threads/${failed[0]!.threadId}/archive`);
        const code = 'provider_unavailable';
        await open(`/runs?scope=all&errorCode=${code}&userId=tester`);
        await button(page, 'Retry all failed Runs that match the filters').click();
        const question = page.getByRole('dialog', { name: 'Retry 2 Runs?' });
        await question.getByText('1 × The Thread is archived; unarchive it first.').waitFor();
        await question.getByText(/^3 Runs of 1 Agent in 1 organization match the filters/).waitFor();
        await look('bulk-question');
        await button(question, 'Retry 2 Runs').click();
        const retried = page.getByRole('group', { name: 'Retry of 3 Runs' });
        await retried.getByText('2 retried.').waitFor();
        await button(retried, 'Show the Runs that were not retried').click();
        await rowOf(page, 'Unchanged Runs', new RegExp(failed[0]!.runId)).waitFor();
        await look('bulk-done');
        for (const { threadId, runId } of failed.slice(1))
          expect((await getThread(world.caller, threadId)).body.run!.id).not.toBe(runId);

        const running = await begin(ENDLESS, 'running');
        await open('/runs?userId=tester&status=running');
        await button(page, 'Cancel all Runs that match the filters').click();
        await button(page.getByRole('dialog'), /^Cancel \d+ Runs$/).click();
        for (const { runId } of running)
          await eventually(async () => (await world.statusOf(runId)) === 'cancelled', { what: 'the Run is cancelled' });
        await button(page, 'Cancel all Runs that match the filters').click();
        await told(page, 'No Run matches');
      }));

    test('allow all that a Run asks, in one action', () =>
      visit('wide', async ({ page, open, look }) => {
        const { runId } = await world.begin('/confirm 3 Write to everybody', 'waiting_input');
        await open('/confirmations');
        await look('confirmations-of-one-run');
        await button(page, `Allow all 3 of this Run Run ${runId}`).click();
        await told(page, 'Allowed: 3 tool calls.');
        await eventually(async () => (await world.statusOf(runId)) === 'completed', { what: 'the Run goes on' });
        expect(await auditOf(runId)).toHaveLength(3);
      }));

    test('the rows stay in their places under the pointer, and a button shows new ones', () =>
      visit('wide', async ({ page, open }) => {
        const first = await world.begin('Who is first?', 'completed');
        await open('/runs?status=completed');
        const row = (runId: string) => rowOf(page, 'Runs', new RegExp(runId));
        await row(first.runId).hover();
        const { y } = (await row(first.runId).boundingBox())!;
        const next = await world.begin('Who is next?', 'completed');
        await button(page, 'Show 1 new Run').waitFor();
        expect((await row(first.runId).boundingBox())!.y).toBe(y);
        expect(await row(next.runId).count()).toBe(0);
        await button(page, 'Show 1 new Run').click();
        await row(next.runId).waitFor();
      }));

    test('find them by filters that stand in the address', () =>
      visit('wide', async ({ page, open }) => {
        const failed = await world.begin('/fail-retryable Where is it?', 'failed');
        const done = await world.begin('Where is she?', 'completed');
        const has = async (found: { runId: string }, other: { runId: string }): Promise<void> => {
          await rowOf(page, 'Runs', new RegExp(found.runId)).waitFor();
          await rowOf(page, 'Runs', new RegExp(other.runId)).waitFor({ state: 'detached' });
        };
        const choose = async (filter: string, option: string): Promise<void> => {
          await page.getByRole('combobox', { name: filter }).click();
          await page.getByRole('option', { name: option, exact: true }).click();
        };
        await open('/runs');
        await page.getByRole('radiogroup', { name: 'Which Runs' }).getByText('All').click();
        await rowOf(page, 'Runs', new RegExp(failed.runId)).waitFor();
        let answer!: () => void;
        const held = new Promise<void>((resolve) => (answer = resolve));
        await page.route(/status=completed/, async (route) => {
          await held;
          await route.continue();
        });
        await choose('Status', 'Completed');
        const old = page.locator('[aria-busy=true]');
        await rowOf(page, 'Runs', new RegExp(failed.runId)).and(old.getByRole('row')).waitFor();
        answer();
        await has(done, failed);
        expect(await old.count()).toBe(0);
        await button(page, 'Clear filters').click();
        await page.getByRole('combobox', { name: 'Error', exact: true }).fill('provider_unavailable');
        await page.keyboard.press('Enter');
        await has(failed, done);
        await choose('Created', 'Last 1 h');
        await choose('Agent', 'echo');
        await page.waitForURL(/agentId/);
        expect(Object.fromEntries(new URL(page.url()).searchParams)).toEqual({
          ...{ scope: 'all', agentId: world.agentId, errorCode: 'provider_unavailable', within: '60' },
        });
        await page.reload();
        await has(failed, done);
      }));
  });

  describe('with Threads', () => {
    test('search, archive, unarchive, terminate and delete one', () =>
      visit('narrow', async ({ page, open, look, allow }) => {
        const { threadId } = await world.begin('The tale of the walrus', 'completed');
        await world.begin('The tale of the carpenter', 'completed');
        const thread = async () =>
          (await world.admin<{ thread: Record<string, unknown> }>('GET', `/threads/${threadId}`)).thread;
        await open('/threads');
        const other = page.getByRole('link', { name: 'The tale of the carpenter' });
        await other.waitFor();
        await page.getByLabel('Search').fill('walrus');
        await other.waitFor({ state: 'detached' });
        await page.getByRole('link', { name: 'The tale of the walrus' }).click();
        await button(page, `Archive Thread ${threadId}`).click();
        await button(page, `Unarchive Thread ${threadId}`).waitFor();
        expect(await thread()).toMatchObject({ archived: true });
        await button(page, `Unarchive Thread ${threadId}`).click();
        await button(page, `Archive Thread ${threadId}`).waitFor();
        expect(await thread()).toMatchObject({ archived: false });
        await pressAndAgree(page, `Terminate Thread ${threadId}`, 'Terminate');
        await button(page, `Terminate Thread ${threadId}`).waitFor({ state: 'detached' });
        expect(await thread()).toMatchObject({ status: 'TERMINATED' });

        await button(page, `Delete Thread ${threadId}`).click();
        const deletion = button(page.getByRole('dialog'), 'Delete permanently');
        expect(await deletion.isDisabled()).toBe(true);
        await page.getByLabel(/^Type the last/).fill(threadId.slice(-6).toLowerCase());
        await look('delete');
        await deletion.click();
        await page.getByRole('heading', { name: 'Threads' }).waitFor();
        const { rowCount } = await world.database.pool.query('select from events where thread_id = $1', [threadId]);
        expect(rowCount).toBe(0);

        allow(/ 404 /);
        await page.goBack();
        const shown = page.getByRole('main');
        await shown.getByRole('alert').waitFor();
        expect(await shown.getByRole('heading').allInnerTexts()).toEqual(['Thread']);
        expect(await shown.getByRole('alert').allInnerTexts()).toEqual([expect.stringContaining(threadId)]);
      }));

    test('download a file, copy an id, and read a stored event', () =>
      visit('wide', async ({ page, open }) => {
        const { threadId, runId } = await world.begin('/artifact The whole story', 'completed');
        await open(`/threads/${threadId}?tab=files`);
        const [download] = await Promise.all([page.waitForEvent('download'), button(page, 'echo.txt').click()]);
        expect([download.suggestedFilename(), await readFile(await download.path(), 'utf8')]).toEqual([
          'echo.txt',
          'The whole story',
        ]);
        await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
        await button(page, `Copy the id of Thread ${threadId}`).click();
        const hasId = async () => (await page.evaluate('navigator.clipboard.readText()')) === threadId;
        await eventually(hasId, { what: 'the id is copied' });
        await page.getByRole('tab', { name: 'Stored events' }).click();
        await button(page, /run\.completed$/).click();
        await page
          .getByRole('group', { name: /^Event \d+ as JSON$/ })
          .getByText(runId)
          .waitFor();
      }));

    test('read the input, output and tool results of a Run, and copy all of it as JSON', () =>
      visit('wide', async ({ page, open, look, resize }) => {
        const { runId } = await world.begin('/artifact The whole story', 'completed');
        await open(`/runs/${runId}`);
        const shown = (name: string | RegExp) => page.getByRole('group', { name });
        await shown('Input of the Run').getByText('/artifact The whole story').waitFor();
        await shown('Output of the Run').getByText('echo.txt').waitFor();
        const tool = button(page, /^Tool/);
        await tool.click();
        await shown('Input of Write a file').getByText('The whole story').waitFor();
        await tool.click();
        await shown('Input of Write a file').waitFor({ state: 'detached' });
        await button(page, 'Show everything').click();
        await shown(/^Result of /).waitFor();
        await shown(/^Text of /)
          .first()
          .waitFor();
        await look('run-everything');
        await resize('narrow');
        await look('run-everything');
        await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
        await button(page, `Copy as JSON Run ${runId}`).click();
        await told(page, 'Copied the Run, its timeline and its events.');
        const copied = JSON.parse(await page.evaluate('navigator.clipboard.readText()')) as {
          run: { id: string };
          timeline: { input: { text: string } };
          events: { type: string; data: { result?: string } }[];
        };
        expect([copied.run.id, copied.timeline.input.text]).toEqual([runId, '/artifact The whole story']);
        expect(copied.events.filter(({ data }) => typeof data.result === 'string')).toHaveLength(1);
        expect(copied.events.at(-1)?.type).toBe('run.completed');
      }));

    test('compare the attempts of a Run whose first attempt failed', () =>
      visit('wide', async ({ page, open }) => {
        const agentId = await addAgent(world, { name: 'patient', harness: { name: 'echo' } });
        const { runId } = await createAcknowledged({ ...world.caller, agentId }, '/flaky 1');
        await eventually(async () => (await world.statusOf(runId)) === 'completed', { what: 'the Run is completed' });
        await open(`/runs/${runId}`);
        await rowOf(page, 'Attempts of the Run', /^1 Error/).waitFor();
        await rowOf(page, 'Attempts of the Run', /^2 OK/).waitFor();
      }));

    test('are told where the browser lets no page copy', () =>
      visit('narrow', async ({ page, open }) => {
        const { threadId } = await world.begin('Whose id is it?', 'completed');
        // As it is over plain http.
        await page.addInitScript('delete Navigator.prototype.clipboard');
        await open(`/threads/${threadId}`);
        await button(page, `Copy the id of Thread ${threadId}`).click();
        await told(page, /Select the text and copy it by hand/);
      }));
  });
});
