import { InvalidArgumentError } from 'commander';
import type { AuditEntry, DoctorCheck } from '#contract';
import type { CommandSpec } from '../command-spec.ts';
import type { Options } from '../options.ts';
import { EXIT } from '../exit-codes.ts';
import { optional, organizationId } from '../resolve.ts';
import type { Paging } from '../session.ts';
import type { Column } from '../table.ts';
import { parseSince } from '../when.ts';
import { PAGING } from './paging.ts';

const checkColumns: Column<DoctorCheck>[] = [
  { head: 'status', value: ({ status }) => status },
  { head: 'check', value: ({ name }) => name },
  { head: 'found', value: ({ message }) => message },
];

export const doctor: CommandSpec<[]> = {
  usage: 'doctor',
  description: `Check the dependencies of the service: database, queue, clock, disk, versions. Exits with ${EXIT.failed} if a check fails.`,
  examples: [['doctor'], ['doctor --local', 'what this machine sees of the database and the queue']],
  async run(session) {
    const { checks } = await session.call('runDoctor');
    await session.print(checks, session.table(checkColumns, checks));
    if (checks.some(({ status }) => status === 'failed')) session.found();
  },
};

const auditColumns: Column<AuditEntry>[] = [
  { head: 'when', value: ({ occurredAt }) => occurredAt },
  { head: 'who', value: ({ actor }) => `${actor.kind} ${actor.name} (${actor.id})` },
  { head: 'what', value: ({ action }) => action },
  { head: 'of', value: ({ targetId }) => targetId, wide: true },
  { head: 'how', value: describe, cut: true, wide: true },
];

/** In one line. */
function describe({ details }: AuditEntry): string {
  const told = Object.entries(details).filter(([, value]) => value !== null);
  return told
    .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ');
}

type AuditOptions = Paging & {
  actor?: string;
  action?: string;
  target?: string;
  org?: string;
  since?: string;
  sessions?: true;
} & Options;

export const audit: CommandSpec<[], AuditOptions> = {
  usage: 'audit',
  description: 'List the changes that operators made, newest first, without sign-ins.',
  options: [
    { flags: '--actor <id>', description: 'only by this operator: the id of a token, or user@host with --local' },
    {
      flags: '--action <action>',
      description: 'only this action, or those whose first words are given: token.revoked, token',
    },
    { flags: '--target <id>', description: 'only changes of this organization, person, token, Agent, Thread or Run' },
    { flags: '--org <org>', description: 'only in this organization' },
    { flags: '--since <when>', description: 'a date, or a time ago: 7d, 12h', parse: parseSince },
    { flags: '--sessions', description: 'include sign-ins and sign-outs of the console' },
    ...PAGING,
  ],
  examples: [['audit'], ['audit --since 7d --action token'], ['audit --target 01JD0000000000000000000000 --json']],
  async run(session, _, { actor, action, target, org, since, sessions, ...paging }) {
    const organization = await optional(organizationId, session, org);
    const hidden = sessions || action?.startsWith('session') ? {} : { sessions: 'false' as const };
    const filter = { actorId: actor, action, targetId: target, organizationId: organization, since, ...hidden };
    await session.printPages(paging, auditColumns, async (page) => {
      const { entries, nextCursor } = await session.call('listAudit', { query: { ...page, ...filter } });
      return { rows: entries, next: nextCursor };
    });
  },
};

export const migrate: CommandSpec<[], { ownerUrl?: string } & Options> = {
  usage: 'migrate',
  description: 'Migrate the database, always directly. Any number of processes may run it at the same time.',
  options: [
    {
      flags: '--owner-url <url>',
      description: 'migrate as this owner of the tables, and give the user of DATABASE_URL the rights of a process',
      parse: parseOwnerUrl,
    },
  ],
  examples: [['migrate'], ['migrate --owner-url postgres://owner@db.example/spool']],
  async run(session, _, { ownerUrl }) {
    const { migrateDatabase } = await import('../local-database.ts');
    const migrated = await migrateDatabase(process.env, ownerUrl);
    const what = migrated.length === 0 ? 'was up to date already' : `is up to date now: ${migrated.join(', ')}`;
    const granted = ownerUrl === undefined ? '' : ' The user of DATABASE_URL has the rights of a process.';
    await session.print({ migrated }, `The database ${what}.${granted}`);
  },
};

function parseOwnerUrl(text: string): string {
  if (/^postgres(ql)?:\/\//.test(text)) return text;
  throw new InvalidArgumentError('It must start with postgres://.');
}
