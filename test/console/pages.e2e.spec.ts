import { describeInBrowser, redisUrl } from '#testing';
import { SCREENS, type Visit } from '../support/browser.ts';
import type { Acknowledged } from '../support/client.ts';
import { button, rowOf, told, useConsole } from '../support/console-page.ts';
import { fillWorld, startConsoleWorld, writeLongThread } from '../support/console-world.ts';
import type { ConsoleRuns, ConsoleWorld } from '../support/console-world.ts';
import type { Page } from 'playwright-core';

describeInBrowser('each page of the console', () => {
  let world: ConsoleWorld;
  let runs: ConsoleRuns;
  let organizationId: string;
  let personId: string;
  const { visit, visitSignedOut } = useConsole(() => world);

  beforeAll(async () => {
    let long: Acknowledged;
    world = await startConsoleWorld(redisUrl().url, async (unmanned) => void (long = await writeLongThread(unmanned)));
    runs = await fillWorld(world, long!);
    ({ organizationId } = (
      await world.admin<{ agent: { organizationId: string } }>('GET', `/agents/${world.agentId}`)
    ).agent);
    const ada = { name: 'Ada Lovelace', organizationIds: [organizationId] };
    personId = (await world.admin<{ person: { id: string } }>('POST', '/people', ada)).person.id;
    await world.admin('POST', '/tokens', { kind: 'person', personId, name: 'laptop' });
  }, 120_000);
  afterAll(() => world?.stop());

  type Shown = (page: Page) => Promise<void>;
  const text =
    (what: string | RegExp): Shown =>
    (page) =>
      told(page, what);
  const row =
    (table: string, what: string | RegExp): Shown =>
    (page) =>
      rowOf(page, table, what).waitFor();

  /** With what is the last to be shown. */
  const PAGES: [name: string, path: () => string, shown: Shown][] = [
    ['overview', () => '/', (page) => page.getByRole('img', { name: /^Chart: Throughput/ }).waitFor()],
    ['runs', () => '/runs?scope=all', row('Runs', /provider_unavailable/)],
    ['run', () => `/runs/${runs.completed.runId}`, row('Timeline of the Run', /Write a file/)],
    ['run-failed', () => `/runs/${runs.failed.runId}`, row('Timeline of the Run', /Error/)],
    ['run-waiting', () => `/runs/${runs.waiting.runId}`, row('Timeline of the Run', /Running/)],
    ['confirmations', () => '/confirmations', text('send_note')],
    ['threads', () => '/threads', row('Threads', /Forecast of the rain/)],
    ['thread', () => `/threads/${runs.completed.threadId}`, text(/You said: .*Forecast of the rain/)],
    ['thread-long', () => `/threads/${runs.long.threadId}`, text(/Latest 1,000 entries/)],
    ['thread-running', () => `/threads/${runs.running.threadId}`, text('Streaming')],
    ['thread-runs', () => `/threads/${runs.cancelled.threadId}?tab=runs`, row('Runs of this Thread', /Cancelled/)],
    ['thread-files', () => `/threads/${runs.completed.threadId}?tab=files`, row('Files of this Thread', /echo\.txt/)],
    ['thread-events', () => `/threads/${runs.completed.threadId}?tab=events`, row('Stored events', /run\.completed/)],
    ['agents', () => '/agents', row('Agents', /echo.*Can run/)],
    ['agent', () => `/agents/${world.agentId}`, row('Versions of echo', /Live/)],
    ['organizations', () => '/organizations', row('Organizations', /Testers/)],
    ['organization', () => `/organizations/${organizationId}`, row('Members of Testers', /Ada Lovelace/)],
    ['people', () => '/people', row('People', /Ada Lovelace/)],
    ['person', () => `/people/${personId}`, row('Tokens of Ada Lovelace', /laptop/)],
    ['tokens', () => '/tokens', row('Tokens', /on call/)],
    ['audit', () => '/audit', row('Audit log', /run\.cancelled/)],
    ['checks', () => '/checks', row('Results of Doctor', /postgres/i)],
    ['no-such-page', () => '/nowhere', text('Go to the overview')],
  ];

  const lookOnAll = async (name: string, { look, resize }: Visit, of?: { isOurs: boolean }): Promise<void> => {
    for (const screen of SCREENS) {
      await resize(screen);
      await look(name, of);
    }
  };

  test.each(PAGES)('%s', (name, path, shown) =>
    visit('wide', async (visited) => {
      await visited.open(path());
      await shown(visited.page);
      await lookOnAll(name, visited);
    }),
  );

  test('login', () =>
    visitSignedOut('wide', async (visited) => {
      await visited.open('/login');
      await visited.page.getByRole('textbox', { name: 'Operator token' }).waitFor();
      await lookOnAll('login', visited);
    }));

  test('queue, which is Bull Board’s, from a phone', () =>
    visit('narrow', async (visited) => {
      const { page, open } = visited;
      const asked: string[] = [];
      page.context().on('request', (request) => asked.push(new URL(request.url()).origin));
      await open('/');
      await button(page, 'Navigation').click();
      await page.getByRole('link', { name: 'Queue (Bull Board)' }).click();
      await page.getByRole('main').getByRole('link', { name: world.env['QUEUE_NAME']! }).waitFor();
      // Its buttons have no names, and some of its text is pale: nothing that we could mend.
      await lookOnAll('queue', visited, { isOurs: false });
      expect(new Set(asked)).toEqual(new Set([new URL(world.caller.baseUrl).origin]));
    }));
});
