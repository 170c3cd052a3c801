import type { OrganizationRecord as Organization, PersonRecord } from '#contract';
import type { CommandSpec, Group } from '../command-spec.ts';
import { CommandError } from '../exit-codes.ts';
import type { Options } from '../options.ts';
import { organizationId, personId } from '../resolve.ts';
import type { Paging, Session } from '../session.ts';
import { renderFields, type Column } from '../table.ts';
import { PAGING } from './paging.ts';
import { personColumns } from './people.ts';

const columns: Column<Organization>[] = [
  { head: 'id', value: ({ id }) => id },
  { head: 'name', value: ({ name }) => name, cut: true },
  { head: 'run limit', value: ({ concurrency }) => concurrency.runs },
  { head: 'files', value: ({ files }) => files.count, wide: true },
  { head: 'bytes', value: ({ files }) => files.bytes, wide: true },
  { head: 'created', value: ({ createdAt }) => createdAt, wide: true },
];

const fieldsOf = (organization: Organization): string =>
  renderFields([
    ...columns.map(({ head, value }): [string, ReturnType<typeof value>] => [head, value(organization)]),
    ['max files', describeLimit(organization.files, 'maxCount')],
    ['max bytes', describeLimit(organization.files, 'maxBytes')],
  ]);

function describeLimit(files: Organization['files'], name: 'maxCount' | 'maxBytes'): string {
  const limit = files.limits[name];
  if (limit === null) return 'no limit';
  return files[name] === null ? `${limit} (default)` : String(limit);
}

const create: CommandSpec<[string]> = {
  usage: 'create <name>',
  description: 'Create an organization.',
  examples: [['org create Acme']],
  async run(session, [name]) {
    const { organization } = await session.call('createOrganization', { body: { name } });
    const { organizations } = await session.call('listOrganizations', { query: { name } });
    if (organizations.length > 1) session.note('Other organizations have this name; use ids, or rename one.');
    await session.print(organization, fieldsOf(organization));
  },
};

const list: CommandSpec<[], Paging> = {
  usage: 'list',
  description: 'List organizations, newest first.',
  options: PAGING,
  examples: [['org list'], ['org list --all --json', 'for programs']],
  run: (session, _, options) =>
    session.printPages(options, columns, async (page) => {
      const { organizations, nextCursor } = await session.call('listOrganizations', { query: page });
      return { rows: organizations, next: nextCursor };
    }),
};

const show: CommandSpec<[string]> = {
  usage: 'show <org>',
  description: 'Show an organization and its members.',
  examples: [['org show Acme']],
  async run(session, [given]) {
    const id = await organizationId(session, given);
    const { organization } = await session.call('getOrganization', { params: { organizationId: id } });
    const members = await readMembers(session, id);
    const text = members.length === 0 ? 'It has no members.' : `Members:\n${session.table(personColumns, members)}`;
    await session.print({ ...organization, members }, `${fieldsOf(organization)}\n\n${text}`);
  },
};

async function readMembers(session: Session, id: string): Promise<PersonRecord[]> {
  const members: PersonRecord[] = [];
  for (let cursor: string | null | undefined; cursor !== null;) {
    const query = { organizationId: id, cursor };
    const page: { people: PersonRecord[]; nextCursor: string | null } = await session.call('listPeople', { query });
    members.push(...page.people);
    cursor = page.nextCursor;
  }
  return members;
}

const rename: CommandSpec<[string, string]> = {
  usage: 'rename <org> <name>',
  description: 'Rename an organization.',
  examples: [['org rename Acme "Acme Ltd"']],
  async run(session, [given, name]) {
    const id = await organizationId(session, given);
    const { organization } = await session.call('renameOrganization', {
      params: { organizationId: id },
      body: { name },
    });
    await session.print(organization, fieldsOf(organization));
  },
};

const limit: CommandSpec<[string, string]> = {
  usage: 'limit <org> <runs>',
  description:
    'Limit how many Runs of an organization are executed at the same time; with `none`, the limit of the installation’s settings applies.',
  examples: [['org limit Acme 20'], ['org limit Acme none']],
  async run(session, [given, runs]) {
    const params = { organizationId: await organizationId(session, given) };
    const body = { runs: limitOf(runs) };
    const { organization } = await session.call('limitOrganization', { params, body });
    await session.print(organization, fieldsOf(organization));
  },
};

const quota: CommandSpec<[string], Options & { files?: string; bytes?: string }> = {
  usage: 'quota <org>',
  description:
    'Limit the number and the total size of an organization’s files; with `none`, the limits of the installation’s settings apply.',
  options: [
    { flags: '--files <count>', description: 'maximum number of drafts, attachments, artifacts and files of folders' },
    { flags: '--bytes <count>', description: 'maximum total size in bytes' },
  ],
  examples: [['org quota Acme --files 100000 --bytes 107374182400'], ['org quota Acme --bytes none']],
  async run(session, [given], { files, bytes }) {
    const body = { maxCount: quotaOf(files), maxBytes: quotaOf(bytes) };
    const params = { organizationId: await organizationId(session, given) };
    const { organization } = await session.call('setFileQuota', { params, body });
    await session.print(organization, fieldsOf(organization));
  },
};

function quotaOf(text: string | undefined): number | null | undefined {
  if (text === undefined) return undefined;
  if (text === 'none') return null;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new CommandError('usage', `Invalid quota "${text}"; use a whole number, or the word none.`);
}

function limitOf(text: string): number | null {
  if (text === 'none') return null;
  if (/^\d+$/.test(text)) return Number(text);
  throw new CommandError('usage', `Invalid number of Runs "${text}"; use 1 to 10000, or none.`);
}

const addMember: CommandSpec<[string, string]> = {
  usage: 'add-member <org> <person>',
  description: 'Add a member. Members may use every Agent of the organization that is not invited-only.',
  examples: [['org add-member Acme "Jo Doe"']],
  async run(session, [org, person]) {
    const body = { personId: await personId(session, person) };
    const params = { organizationId: await organizationId(session, org) };
    await session.print(await session.call('addMember', { params, body }), `${person} is a member of ${org}.`);
  },
};

const removeMember: CommandSpec<[string, string]> = {
  usage: 'remove-member <org> <person>',
  description: 'Remove a member. Within 5 s, every pod denies the person the organization’s Agents.',
  examples: [['org remove-member Acme "Jo Doe"'], ['org remove-member Acme "Jo Doe" --yes', 'in a script']],
  asks: ([org, person]) => `Remove ${person} from ${org}?`,
  async run(session, [org, person]) {
    const params = {
      organizationId: await organizationId(session, org),
      personId: await personId(session, person),
    };
    await session.print(await session.call('removeMember', { params }), `${person} is no longer a member of ${org}.`);
  },
};

export const organizations: Group = {
  name: 'org',
  description: 'Organizations and their members.',
  commands: [create, list, show, rename, limit, quota, addMember, removeMember],
};
