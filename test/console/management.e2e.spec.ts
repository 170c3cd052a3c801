import type { Page } from 'playwright-core';
import { AccessStore } from '#access';
import { publishAgentVersion, type AgentManifestInput } from '#agents';
import type { OrganizationRecord } from '#contract';
import { describeInBrowser, eventually, redisUrl } from '#testing';
import { createThread, send } from '../support/client.ts';
import { button, pressAndAgree, rowOf, told, useConsole } from '../support/console-page.ts';
import { startConsoleWorld, type ConsoleWorld } from '../support/console-world.ts';
import { addAgent } from '../support/more-agents.ts';

const POET: AgentManifestInput = { name: 'poet', description: 'The first.', harness: { name: 'echo', pauseMs: 0 } };

describeInBrowser('what operators manage in the console', () => {
  let world: ConsoleWorld;
  const { visit } = useConsole(() => world);

  beforeAll(async () => {
    world = await startConsoleWorld(redisUrl().url, undefined, { ORGANIZATION_FILES: '5000' });
  }, 120_000);
  afterAll(() => world?.stop());

  interface Agent {
    organizationId: string;
    published: boolean;
    apiEnabled: boolean;
    access: string;
    liveVersion: number;
    invitedPersonIds: string[];
    deletedAt: string | null;
  }

  describe('of Agents', () => {
    let agentId: string;
    const agent = async () => (await world.admin<{ agent: Agent }>('GET', `/agents/${agentId}`)).agent;
    const becomes = (expected: Partial<Agent>) =>
      eventually(async () => (expect(await agent()).toMatchObject(expected), true), { what: 'the Agent has changed' });

    beforeAll(async () => {
      agentId = await addAgent(world, POET);
      await publishAgentVersion(world.database.pool, agentId, { ...POET, description: 'The second.' });
    });

    test('whether callers reach it', () =>
      visit('narrow', async ({ page, open }) => {
        await open(`/agents/${agentId}`);
        await pressAndAgree(page, 'Unpublish Agent poet', 'Unpublish');
        await button(page, 'Publish Agent poet').waitFor();
        expect(await agent()).toMatchObject({ published: false });
        await button(page, 'Publish Agent poet').click();
        await button(page, 'Unpublish Agent poet').waitFor();
        expect(await agent()).toMatchObject({ published: true });
        await pressAndAgree(page, 'Disable for callers Agent poet', 'Disable');
        await button(page, 'Enable for callers Agent poet').waitFor();
        expect(await agent()).toMatchObject({ apiEnabled: false });
        await button(page, 'Enable for callers Agent poet').click();
        await button(page, 'Disable for callers Agent poet').waitFor();
        expect(await agent()).toMatchObject({ apiEnabled: true });
      }));

    test('who may use it', () =>
      visit('wide', async ({ page, open }) => {
        const access = new AccessStore(world.database.pool);
        const personId = await access.createPerson('Ada Lovelace');
        await access.addMember((await agent()).organizationId, personId);
        await open(`/agents/${agentId}`);
        await page.getByRole('radiogroup', { name: 'Who may use poet' }).getByText('Invited people only').click();
        await button(page.getByRole('dialog'), 'Restrict access').click();
        await becomes({ access: 'invited' });
        await page
          .getByRole('combobox', { name: 'Person' })
          .or(page.getByRole('textbox', { name: 'Person' }))
          .click();
        await page.getByRole('option', { name: 'Ada Lovelace' }).click();
        await button(page, 'Invite').click();
        await rowOf(page, 'People invited to poet', /Ada Lovelace/).waitFor();
        expect(await agent()).toMatchObject({ invitedPersonIds: [personId] });
        await pressAndAgree(page, 'Remove the invitation of Ada Lovelace', 'Remove');
        await becomes({ invitedPersonIds: [] });
      }));

    test('which version is live', () =>
      visit('wide', async ({ page, open, look }) => {
        await open(`/agents/${agentId}`);
        await button(page, 'Compare version 1 with the live one').click();
        const difference = page.getByRole('region', { name: 'From version 1 to the live one' });
        await difference.waitFor();
        expect(await difference.locator('[data-change=removed], [data-change=added]').allInnerTexts()).toEqual([
          '- description: The first.\n',
          '+ description: The second.\n',
        ]);
        await button(page, 'Roll back Agent poet to version 1').click();
        await page.getByRole('region', { name: 'From the live version to version 1' }).waitFor();
        await look('roll-back');
        await button(page.getByRole('dialog'), 'Roll back').click();
        await told(page, 'Version 1 of poet is live again, as version 3.');
        await rowOf(page, 'Versions of poet', /^3 Live/).waitFor();
        const { manifest } = await world.admin<{ manifest: unknown }>('GET', `/agents/${agentId}`);
        expect([manifest, await agent()]).toMatchObject([{ description: 'The first.' }, { liveVersion: 3 }]);
      }));

    test('that it is no more', () =>
      visit('narrow', async ({ page, open }) => {
        await open('/agents?name=poet');
        await page.getByRole('link', { name: 'poet' }).click();
        await button(page, 'Delete Agent poet').click();
        await page.getByLabel('Type poet to delete it').fill('poet');
        await button(page.getByRole('dialog'), 'Delete permanently').click();
        await told(page, /poet is deleted/);
        await button(page, 'Filters').click();
        await page.getByRole('switch', { name: 'Deleted only' }).check();
        await rowOf(page, 'Agents', /poet.*Deleted/).waitFor();
        expect((await agent()).deletedAt).not.toBeNull();
      }));
  });

  test('tokens: mint, rotate and revoke one; each secret is shown once', () =>
    visit('narrow', async ({ page, open, look }) => {
      const statusWith = async (token: string): Promise<number> =>
        (await createThread({ ...world.caller, token }, 'hi')).status;
      const stored = async (): Promise<string> => {
        const secret = (await page.locator('[data-secret]').innerText()).trim();
        await button(page, 'I have stored it').click();
        await page.locator('[data-secret]').waitFor({ state: 'detached' });
        return secret;
      };
      await open('/tokens');
      await button(page, 'Create token').click();
      await page.getByRole('dialog').getByRole('textbox', { name: 'Name' }).fill('laptop');
      await choose(page, 'Person', 'Tester');
      await page.getByRole('dialog').getByRole('textbox', { name: 'Open streams per process' }).fill('50');
      await look('mint');
      await button(page, 'Create').click();
      const first = await stored();
      await rowOf(page, 'Tokens', /laptop.* 50 streams/).waitFor();
      expect(await statusWith(first)).toBe(201);
      expect(await page.content()).not.toContain(first);

      await button(page, 'Rotate token laptop').click();
      const works = page.getByRole('dialog').getByRole('combobox', { name: 'The old secret works' });
      expect(await works.inputValue()).toBe('for 1 hour');
      await button(page.getByRole('dialog'), 'Rotate').click();
      const middle = await stored();
      await button(page, 'Rotate token laptop').click();
      await told(page, /^The secret before the last rotation works until/);
      await choose(page, 'The old secret works', 'not at all');
      await button(page.getByRole('dialog'), 'Rotate').click();
      const second = await stored();
      const isRefused = (secret: string) =>
        eventually(async () => (await statusWith(secret)) === 401, { what: 'the secret is refused' });
      await isRefused(first);
      await isRefused(middle);
      expect(await statusWith(second)).toBe(201);

      await button(page, 'Limits of token laptop').click();
      const dialog = page.getByRole('dialog');
      await dialog.getByRole('textbox', { name: 'Requests per minute' }).fill('4321');
      await dialog.getByRole('textbox', { name: 'Open streams per process' }).fill('7');
      await look('limits');
      await button(dialog, 'Save').click();
      await told(page, 'laptop has new limits.');
      await rowOf(page, 'Tokens', /laptop.*4,321 requests\/min.*7 streams/).waitFor();
      const limitOf = async (token: string): Promise<string | null> =>
        (await send({ ...world.caller, token }, 'GET', `/agents/${world.agentId}`)).headers.get('ratelimit-limit');
      const isLimited = async () => (await limitOf(second)) === '4321';
      await eventually(isLimited, { what: 'the limit holds', timeoutMs: 5_000 });
      // An empty field is the default again.
      await button(page, 'Limits of token laptop').click();
      await dialog.getByRole('textbox', { name: 'Open streams per process' }).fill('');
      await button(dialog, 'Save').click();
      await rowOf(page, 'Tokens', /laptop.*4,321 requests\/min(?!.* 7 streams)/).waitFor();

      await pressAndAgree(page, 'Revoke token laptop', 'Revoke');
      await told(page, 'laptop is revoked.');
      await rowOf(page, 'Tokens', /laptop.*Revoked/).waitFor();
      await isRefused(second);

      await open('/audit?action=token');
      await button(page, /^Details of token\.rotated/)
        .first()
        .click();
      await page
        .getByRole('group', { name: /^Details of entry/ })
        .getByText('graceSeconds')
        .waitFor();
    }));

  test('organizations: shows what each has of its limits, and sets them', () =>
    visit('narrow', async ({ page, open, look }) => {
      const { pool } = world.database;
      const organizationId = await new AccessStore(pool).createOrganization('Globex');
      const usage = `insert into file_usage (organization_id, files, bytes) values ($1, 1234, 5 * 1024 * 1024)`;
      await pool.query(usage, [organizationId]);
      const organization = async () =>
        (await world.admin<{ organization: OrganizationRecord }>('GET', `/organizations/${organizationId}`))
          .organization;
      await open('/organizations?name=Globex');
      await rowOf(
        page,
        'Organizations',
        /Globex.* The installation’s limit 1,234 of 5,000, the installation’s limit 5\.0 MiB no limit/,
      ).waitFor();

      await button(page, 'Limits of organization Globex').click();
      const dialog = page.getByRole('dialog');
      await dialog.getByRole('textbox', { name: 'Runs at the same time' }).fill('20');
      await dialog.getByRole('textbox', { name: 'Files', exact: true }).fill('100000');
      await dialog.getByRole('textbox', { name: 'Bytes in all files' }).fill('107374182400');
      await dialog.getByText('100 GiB').waitFor();
      await look('organization-limits');
      await button(dialog, 'Save').click();
      await told(page, 'Globex has new limits.');
      await rowOf(page, 'Organizations', /Globex.* 20 1,234 of 100,000 5\.0 MiB of 100 GiB/).waitFor();
      expect(await organization()).toMatchObject({
        concurrency: { runs: 20 },
        files: { count: 1_234, maxCount: 100_000, maxBytes: 107_374_182_400 },
      });

      // An empty field is the installation's limit again; the other limits stay.
      await button(page, 'Limits of organization Globex').click();
      await dialog.getByRole('textbox', { name: 'Files', exact: true }).fill('');
      await button(dialog, 'Save').click();
      await rowOf(
        page,
        'Organizations',
        /Globex.* 20 1,234 of 5,000, the installation’s limit 5\.0 MiB of 100 GiB/,
      ).waitFor();
      expect(await organization()).toMatchObject({
        concurrency: { runs: 20 },
        files: { maxCount: null, maxBytes: 107_374_182_400 },
      });
      // There are no such files: verify would find that.
      await pool.query('delete from file_usage where organization_id = $1', [organizationId]);
    }));

  test('organizations and people: creates and renames both, and adds and removes members', () =>
    visit('wide', async ({ page, open }) => {
      const naming = page.getByRole('dialog').getByRole('textbox', { name: 'Name' });
      const name = async (press: string, typed: string, submit: string): Promise<void> => {
        await button(page, press).click();
        await naming.fill(typed);
        await button(page.getByRole('dialog'), submit).click();
        await page.getByRole('dialog').waitFor({ state: 'detached' });
      };
      await open('/organizations');
      await name('Create organization', 'Initech', 'Create organization');
      await page.getByRole('link', { name: 'Initech' }).click();
      await name('Rename organization Initech', 'Initrode', 'Rename');
      await page.getByRole('heading', { name: 'Initrode', level: 1 }).waitFor();
      await name('Create person in Initrode', 'Milton', 'Create person');
      await rowOf(page, 'Members of Initrode', /Milton/)
        .getByRole('link', { name: 'Milton' })
        .click();
      await name('Rename person Milton', 'Milton Waddams', 'Rename');
      await rowOf(page, 'Organizations of Milton Waddams', /Initrode/).waitFor();
      await pressAndAgree(page, 'Remove Milton Waddams from Initrode', 'Remove');
      await page.getByText('Not a member of any organization.').waitFor();

      await page
        .getByRole('combobox', { name: 'Organization' })
        .or(page.getByRole('textbox', { name: 'Organization' }))
        .click();
      await page.getByRole('option', { name: 'Initrode' }).click();
      await button(page, 'Add').click();
      await rowOf(page, 'Organizations of Milton Waddams', /Initrode/).waitFor();
      const { people } = await world.admin<{ people: { id: string; organizationIds: string[] }[] }>(
        'GET',
        '/people?name=Milton%20Waddams',
      );
      const { organizations } = await world.admin<{ organizations: OrganizationRecord[] }>(
        'GET',
        '/organizations?name=Initrode',
      );
      expect(people.map(({ organizationIds }) => organizationIds)).toEqual([[organizations[0]!.id]]);
      await open(`/audit?targetId=${people[0]!.id}`);
      await rowOf(page, 'Audit log', /person\.renamed/)
        .getByRole('link')
        .click();
      await page.getByRole('heading', { name: 'Milton Waddams', level: 1 }).waitFor();
    }));

  test('checks: verify finds what is wrong, rebuild mends it, and both tell how far they are', () =>
    visit('wide', async ({ page, open }) => {
      const { threadId } = await world.begin('Whose title is lost?', 'completed');
      const { pool } = world.database;
      await pool.query('update thread_summaries set title = $2 where thread_id = $1', [threadId, 'Another']);
      await open('/checks');
      const verify = async (expected: string): Promise<void> => {
        await button(page, 'Start Verify').click();
        await page.getByRole('status', { name: 'Verify: progress' }).getByText('Done after').waitFor();
        await told(page, expected);
      };
      await verify('1 finding');
      await rowOf(page, 'Findings', new RegExp(threadId)).waitFor();
      await button(page, 'Start Rebuild').click();
      await told(page, '1 row repaired');
      const { rows } = await pool.query('select title from thread_summaries where thread_id = $1', [threadId]);
      expect(rows).toEqual([{ title: 'Whose title is lost?' }]);
      await verify('Every invariant holds.');
    }));

  test('checks: what was gone on with does not tell of what came before', () =>
    visit('wide', async ({ page, open }) => {
      await open('/checks');
      const found = { found: 1, byInvariant: { I7: 1 }, findings: [], unknownEvents: 0 };
      const line = { ...found, streams: 1, events: 9, lastThreadId: '0'.repeat(26), done: false };
      // Cut after the first line.
      await page.route('**/verify', (route) => route.fulfill({ body: `${JSON.stringify(line)}\n` }), { times: 1 });
      await button(page, 'Start Verify').click();
      await told(page, 'The connection ended before the check was complete.');
      await told(page, '1 finding');
      await button(page, 'Continue Verify').click();
      await told(page, 'Every invariant holds in the Threads checked.');
      await told(page, `Continued after Thread ${line.lastThreadId}; earlier Threads are not counted here.`);
      await button(page, 'Start Verify').click();
      await page.getByText('Every invariant holds.', { exact: true }).waitFor();
    }));
});

/** In a list that opens below its field. */
async function choose(page: Page, label: string, option: string): Promise<void> {
  await page.getByLabel(label).and(page.locator('[aria-haspopup=listbox]')).last().click();
  await page.getByRole('option', { name: option, exact: true }).click();
}
