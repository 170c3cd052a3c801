import type { PersonRecord } from '#contract';
import type { CommandSpec, Group } from '../command-spec.ts';
import type { Options } from '../options.ts';
import { optional, organizationId, personId } from '../resolve.ts';
import type { Paging } from '../session.ts';
import { renderFields, type Column } from '../table.ts';
import { PAGING } from './paging.ts';

export const personColumns: Column<PersonRecord>[] = [
  { head: 'id', value: ({ id }) => id },
  { head: 'name', value: ({ name }) => name, cut: true },
  { head: 'created', value: ({ createdAt }) => createdAt, wide: true },
  { head: 'organizations', value: ({ organizationIds }) => organizationIds, wide: true },
];

const fieldsOf = (person: PersonRecord): string =>
  renderFields(personColumns.map(({ head, value }) => [head, value(person)]));

const create: CommandSpec<[string], Options & { org?: string[] }> = {
  usage: 'create <name>',
  description: 'Create a user: a person who can have tokens and own Agents and Threads.',
  options: [{ flags: '--org <org>', description: 'organization to join; repeatable', many: true }],
  examples: [['user create "Jo Doe" --org Acme'], ['user create Ann --org Acme --org Umbrella']],
  async run(session, [name], { org = [] }) {
    const organizationIds: string[] = [];
    for (const each of org) organizationIds.push(await organizationId(session, each));
    const { person } = await session.call('createPerson', { body: { name, organizationIds } });
    await session.print(person, fieldsOf(person));
  },
};

const list: CommandSpec<[], Paging & { org?: string }> = {
  usage: 'list',
  description: 'List users, newest first.',
  options: [{ flags: '--org <org>', description: 'only its members' }, ...PAGING],
  examples: [['user list'], ['user list --org Acme']],
  async run(session, _, { org, ...paging }) {
    const organization = await optional(organizationId, session, org);
    await session.printPages(paging, personColumns, async (page) => {
      const query = { ...page, organizationId: organization };
      const { people, nextCursor } = await session.call('listPeople', { query });
      return { rows: people, next: nextCursor };
    });
  },
};

const show: CommandSpec<[string]> = {
  usage: 'show <person>',
  description: 'Show a user.',
  examples: [['user show "Jo Doe"']],
  async run(session, [given]) {
    const params = { personId: await personId(session, given) };
    const { person } = await session.call('getPerson', { params });
    await session.print(person, fieldsOf(person));
  },
};

const rename: CommandSpec<[string, string]> = {
  usage: 'rename <person> <name>',
  description: 'Rename a user.',
  examples: [['user rename "Jo Doe" "Jo Smith"']],
  async run(session, [given, name]) {
    const params = { personId: await personId(session, given) };
    const { person } = await session.call('renamePerson', { params, body: { name } });
    await session.print(person, fieldsOf(person));
  },
};

export const people: Group = {
  name: 'user',
  description: 'Users: the people who can have tokens.',
  commands: [create, list, show, rename],
};
