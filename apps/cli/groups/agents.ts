import type { AgentVersionRecord, ManagedAgent } from '#contract';
import type { AnswerOf, CallOf } from '../admin-client.ts';
import type { CommandSpec, Group, OptionSpec } from '../command-spec.ts';
import type { Options } from '../options.ts';
import { InvalidArgumentError } from 'commander';
import { agentId, optional, organizationId, personId } from '../resolve.ts';
import type { Paging, Session } from '../session.ts';
import { renderFields, type Column } from '../table.ts';
import { colourDiff, countOf, showControls, showInLine } from '../text.ts';
import { apply } from './agent-apply.ts';
import { check } from './agent-check.ts';
import { PAGING } from './paging.ts';

type InOrganization = Options & { org?: string };
const ORG: OptionSpec = {
  flags: '--org <org>',
  description: 'organization of the Agent, if several have an Agent with this name',
};

const columns: Column<ManagedAgent>[] = [
  { head: 'id', value: ({ id }) => id },
  { head: 'name', value: ({ name }) => name, cut: true },
  { head: 'organization', value: ({ organizationName }) => organizationName, cut: true, wide: true },
  { head: 'version', value: ({ liveVersion }) => liveVersion },
  { head: 'published', value: ({ published }) => published },
  { head: 'api', value: ({ apiEnabled }) => apiEnabled, wide: true },
  { head: 'access', value: ({ access }) => access, wide: true },
  { head: 'description', value: ({ description }) => description, cut: true, wide: true },
];

const fieldsOf = (agent: ManagedAgent): string =>
  renderFields([
    ...columns.map(({ head, value }) => [head, value(agent)] as const),
    ['organization id', agent.organizationId],
    ['kind', agent.kind],
    ['owner', agent.ownerPersonId],
    ['invited', agent.invitedPersonIds],
    ['created', agent.createdAt],
    ['deleted', agent.deletedAt],
  ]);

async function find(session: Session, given: string, { org }: InOrganization): Promise<{ agentId: string }> {
  const organization = await optional(organizationId, session, org);
  return { agentId: await agentId(session, given, organization) };
}

const list: CommandSpec<[], Paging & InOrganization & { deleted?: true }> = {
  usage: 'list',
  description: 'List Agents, newest first.',
  options: [
    { flags: '--org <org>', description: 'only this organization’s' },
    { flags: '--deleted', description: 'only deleted Agents' },
    ...PAGING,
  ],
  examples: [['agent list'], ['agent list --org Acme --json']],
  async run(session, _, { org, deleted, ...paging }) {
    const organization = await optional(organizationId, session, org);
    await session.printPages(paging, columns, async (page) => {
      const query = { ...page, organizationId: organization, ...(deleted ? { deleted: 'true' as const } : {}) };
      const { agents, nextCursor } = await session.call('listAgents', { query });
      return { rows: agents, next: nextCursor };
    });
  },
};

const show: CommandSpec<[string], InOrganization & { at?: string }> = {
  usage: 'show <agent>',
  description:
    'Show an Agent: live manifest, readiness and tool policies. With --at, show the manifest of one version.',
  options: [ORG, { flags: '--at <version>', description: 'only the manifest of this version' }],
  examples: [['agent show echo --org Acme'], ['agent show echo --at 3'], ['agent show echo --json']],
  async run(session, [given], options) {
    if (options.at !== undefined) {
      const params = { ...(await find(session, given, options)), version: options.at };
      const { manifest } = await session.call('getVersion', { params });
      return session.print(manifest, showControls(JSON.stringify(manifest, null, 2)));
    }
    const answer = await session.call('getAgent', { params: await find(session, given, options) });
    const { agent, manifest, readiness } = answer;
    const state = agent.deletedAt === null ? describeReadiness(readiness) : 'It is deleted.';
    const parts = [fieldsOf(agent), state, ...describeWarnings(answer), ...describeTools(session, answer)];
    const text = [...parts, showControls(JSON.stringify(manifest, null, 2))].join('\n\n');
    await session.print(answer, text);
  },
};

/** What exactly is missing; what callers are told of it says less. */
function describeReadiness(readiness: AnswerOf<'getAgent'>['readiness']): string {
  const problems = readiness.map(({ detail }) => `  ${showInLine(detail)}`);
  return problems.length === 0 ? 'It can run.' : ['It cannot run:', ...problems].join('\n');
}

function describeWarnings({ warnings }: AnswerOf<'getAgent'>): string[] {
  const lines = warnings.map(({ detail }) => `  ${showInLine(detail)}`);
  return lines.length === 0 ? [] : [['Warnings:', ...lines].join('\n')];
}

type Policy = AnswerOf<'getAgent'>['toolPolicies'][number];
const policyColumns: Column<Policy>[] = [
  { head: 'tools', value: ({ pattern }) => pattern, cut: true },
  { head: 'policy', value: ({ policy }) => policy },
];

function describeTools(session: Session, { toolPolicies, toolServers }: AnswerOf<'getAgent'>): string[] {
  const servers = toolServers.map(({ name, required }) => (required ? name : `${name} (not required)`));
  return [
    ...(toolPolicies.length === 0 ? [] : [session.table(policyColumns, toolPolicies)]),
    ...(servers.length === 0 ? [] : [`Tool servers: ${servers.join(', ')}`]),
  ];
}

const versionColumns: Column<AgentVersionRecord>[] = [
  { head: 'version', value: ({ version }) => version },
  { head: 'live', value: ({ live }) => live },
  { head: 'created', value: ({ createdAt }) => createdAt },
];
const VERSIONS_A_PAGE = 100;

const versions: CommandSpec<[string], InOrganization & Paging> = {
  usage: 'versions <agent>',
  description: 'List the versions of an Agent, newest first.',
  options: [ORG, ...PAGING],
  examples: [['agent versions echo'], ['agent versions echo --json --all']],
  async run(session, [given], options) {
    const params = await find(session, given, options);
    await session.printPages(options, versionColumns, async ({ cursor, limit = VERSIONS_A_PAGE }) => {
      const query = { limit: String(limit), before: cursor };
      const { versions: rows } = await session.call('listVersions', { params, query });
      const last = rows.at(-1)?.version ?? 1;
      return { rows, next: rows.length < Number(limit) || last === 1 ? null : String(last) };
    });
  },
};

/** Commands that are one operation on an Agent, and show what it has become. */
const change = (
  spec: Pick<CommandSpec<[string], InOrganization>, 'usage' | 'description' | 'examples' | 'asks'>,
  operation: 'publishAgent' | 'unpublishAgent',
): CommandSpec<[string], InOrganization> => ({
  ...spec,
  options: [ORG],
  async run(session, [given], options) {
    const params = await find(session, given, options);
    const { agent } = await session.call(operation, { params });
    await session.print(agent, fieldsOf(agent));
    const { readiness } = await session.call('getAgent', { params });
    if (agent.published && readiness.length > 0) session.note(describeReadiness(readiness));
  },
});

const publish = change(
  {
    usage: 'publish <agent>',
    description: 'Let callers use an Agent.',
    examples: [['agent publish echo']],
  },
  'publishAgent',
);

const unpublish = change(
  {
    usage: 'unpublish <agent>',
    description: 'Reject callers of an Agent and end their streams. Running Runs continue.',
    examples: [['agent unpublish echo'], ['agent unpublish echo --org Acme --yes', 'in a script']],
    asks: ([given]) => `Reject all callers of ${given}?`,
  },
  'unpublishAgent',
);

const rollback: CommandSpec<[string], InOrganization & { to?: number }> = {
  usage: 'rollback <agent>',
  description: 'Make the manifest of an older version live again, as the next version.',
  options: [
    {
      flags: '--to <version>',
      description: 'version to restore; default: the one before the live version',
      parse: parseVersion,
    },
    ORG,
  ],
  examples: [['agent rollback echo'], ['agent rollback echo --to 3 --yes']],
  asks: ([given], { to }) =>
    `Make ${to === undefined ? 'the version before' : `version ${to}`} of ${given} live again?`,
  async run(session, [given], options) {
    const body = { version: options.to };
    const answer = await session.call('rollBackAgent', { params: await find(session, given, options), body });
    await session.print(answer, `${colourDiff(answer.diff, session.coloured)}\n\n${fieldsOf(answer.agent)}`);
  },
};

function parseVersion(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number, at least 1.');
}

const remove: CommandSpec<[string], InOrganization> = {
  usage: 'delete <agent>',
  description: 'Delete an Agent and terminate its Threads. Callers can no longer find them.',
  options: [ORG],
  examples: [['agent delete echo'], ['agent delete 01JD0000000000000000000000 --yes', 'in a script']],
  asks: ([given]) => `Delete Agent ${given} and terminate all its Threads?`,
  async run(session, [given], options) {
    const answer = await session.call('deleteAgent', { params: await find(session, given, options) });
    const { agent, ended, complete } = answer;
    const rest = complete ? '' : ' Workers terminate the rest.';
    const name = showInLine(agent.name);
    await session.print(answer, `${name} is deleted; ${countOf(ended, 'Thread')} terminated.${rest}`);
  },
};

const access: CommandSpec<[string, 'organization' | 'invited'], InOrganization> = {
  usage: 'access <agent> <who>',
  description: 'Set who may use an Agent: every member of its organization, or its owner and invited people.',
  argumentChoices: { who: ['organization', 'invited'] },
  options: [ORG],
  examples: [['agent access echo invited'], ['agent access echo organization']],
  run: (session, [given, who], options) => update(session, given, options, { access: who }),
};

const invite: CommandSpec<[string, string], InOrganization> = {
  usage: 'invite <agent> <person>',
  description: 'Invite a member of the organization to an invited-only Agent.',
  options: [ORG],
  examples: [['agent invite echo "Jo Doe"']],
  async run(session, [given, person], options) {
    const body = { personId: await personId(session, person) };
    const params = await find(session, given, options);
    const answer = await session.call('invitePerson', { params, body });
    await session.print(answer, `${person} is invited to use ${given}.`);
    const { agent } = await session.call('getAgent', { params });
    const invited = await session.call('getPerson', { params: body });
    if (!invited.person.organizationIds.includes(agent.organizationId))
      session.note(`${person} cannot use it before becoming a member of its organization: spool org add-member`);
  },
};

const uninvite: CommandSpec<[string, string], InOrganization> = {
  usage: 'uninvite <agent> <person>',
  description: 'Remove an invitation.',
  options: [ORG],
  examples: [['agent uninvite echo "Jo Doe"']],
  async run(session, [given, person], options) {
    const params = { ...(await find(session, given, options)), personId: await personId(session, person) };
    await session.print(
      await session.call('uninvitePerson', { params }),
      `${person} is no longer invited to use ${given}.`,
    );
  },
};

const api: CommandSpec<[string, 'on' | 'off'], InOrganization> = {
  usage: 'api <agent> <state>',
  description: 'Enable or disable API access to a published Agent.',
  argumentChoices: { state: ['on', 'off'] },
  options: [ORG],
  examples: [['agent api echo on'], ['agent api echo off --yes', 'callers are rejected within 5 s']],
  asks: ([given, state]) => (state === 'on' ? null : `Reject all callers of ${given}?`),
  run: (session, [given, state], options) => update(session, given, options, { apiEnabled: state === 'on' }),
};

const owner: CommandSpec<[string, string], InOrganization> = {
  usage: 'owner <agent> <person>',
  description: 'Set the owner of an Agent: a person, or nobody.',
  options: [ORG],
  examples: [['agent owner echo "Jo Doe"'], ['agent owner echo nobody']],
  async run(session, [given, person], options) {
    const ownerPersonId = person === 'nobody' ? null : await personId(session, person);
    await update(session, given, options, { ownerPersonId });
  },
};

type Change = NonNullable<CallOf<'updateAgent'>['body']>;

async function update(session: Session, given: string, options: InOrganization, body: Change): Promise<void> {
  const { agent } = await session.call('updateAgent', { params: await find(session, given, options), body });
  await session.print(agent, fieldsOf(agent));
}

const commands = [
  apply,
  check,
  list,
  show,
  versions,
  publish,
  unpublish,
  rollback,
  remove,
  access,
  invite,
  uninvite,
  api,
  owner,
];

export const agents: Group = {
  name: 'agent',
  description: 'Agents: their manifests and versions, and who may use them.',
  commands: commands,
};
