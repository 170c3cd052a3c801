import { AccessStore } from '#access';
import type { OrganizationRecord } from '#contract';
import { fileQuotaOf, type Config, type FileQuota } from '#platform';
import type { Pool } from 'pg';
import { audited, lockRow } from './audit.ts';
import type { SomeHandlers } from './handlers.ts';
import { AdminReader, pageOf, type OrganizationRow } from './reader.ts';
import { missing } from './refused.ts';

const ok = { ok: true } as const;

export interface OrganizationHandlerParts {
  pool: Pool;
  config: Pick<Config, 'ORGANIZATION_FILES' | 'ORGANIZATION_FILE_BYTES'>;
}

type OrganizationHandlers = SomeHandlers<
  | 'createOrganization'
  | 'listOrganizations'
  | 'getOrganization'
  | 'renameOrganization'
  | 'limitOrganization'
  | 'setFileQuota'
>;

/** Handles organizations and their limits. */
export function organizationHandlers({ pool, config }: OrganizationHandlerParts): OrganizationHandlers {
  const reader = new AdminReader(pool);
  const show = withLimits(fileQuotaOf(config));
  return {
    createOrganization: ({ body: { name } }, { actor }) =>
      audited(pool, actor, async (client, note) => {
        const id = await new AccessStore(client).createOrganization(name);
        note({ action: 'organization.created', targetId: id, organizationId: id, details: { name } });
        return { organization: show(await findOrganization(new AdminReader(client), id)) };
      }),

    listOrganizations: async ({ query: { limit, ...wanted } }) => {
      const { page, nextCursor } = pageOf(await reader.organizations({ ...wanted, limit: limit + 1 }), limit);
      return { organizations: page.map(show), nextCursor };
    },

    getOrganization: async ({ params: { organizationId: id } }) => ({
      organization: show(await findOrganization(reader, id)),
    }),

    renameOrganization: ({ params: { organizationId: id }, body: { name } }, { actor }) =>
      audited(pool, actor, async (client, note) => {
        await lockRow(client, 'organizations', id);
        const before = await findOrganization(new AdminReader(client), id);
        if (before.name === name) return { organization: show(before) };
        await new AccessStore(client).renameOrganization(id, name);
        const details = { name, was: before.name };
        note({ action: 'organization.renamed', targetId: id, organizationId: id, details });
        return { organization: show({ ...before, name }) };
      }),

    limitOrganization: ({ params: { organizationId: id }, body: { runs } }, { actor }) =>
      audited(pool, actor, async (client, note) => {
        await lockRow(client, 'organizations', id);
        const before = await findOrganization(new AdminReader(client), id);
        if (before.concurrency.runs === runs) return { organization: show(before) };
        await new AccessStore(client).limitOrganization(id, runs);
        const details = { runs, was: before.concurrency.runs };
        note({ action: 'organization.limited', targetId: id, organizationId: id, details });
        return { organization: show({ ...before, concurrency: { runs } }) };
      }),

    setFileQuota: ({ params: { organizationId: id }, body }, { actor }) =>
      audited(pool, actor, async (client, note) => {
        await lockRow(client, 'organizations', id);
        const before = await findOrganization(new AdminReader(client), id);
        const { maxCount: wasCount, maxBytes: wasBytes } = before.files;
        const { maxCount = wasCount, maxBytes = wasBytes } = body;
        if (maxCount === wasCount && maxBytes === wasBytes) return { organization: show(before) };
        await new AccessStore(client).setFileQuota(id, maxCount, maxBytes);
        const details = { maxCount, maxBytes, was: { maxCount: wasCount, maxBytes: wasBytes } };
        note({ action: 'organization.file_quota_set', targetId: id, organizationId: id, details });
        return { organization: show({ ...before, files: { ...before.files, maxCount, maxBytes } }) };
      }),
  };
}

/** Adds the file limits in force to an organization. `quota` is the default. */
const withLimits =
  (quota: FileQuota) =>
  ({ files, ...organization }: OrganizationRow): OrganizationRecord => {
    const limits = { maxCount: files.maxCount ?? quota.maxFiles, maxBytes: files.maxBytes ?? quota.maxBytes };
    return { ...organization, files: { ...files, limits } };
  };

export function membershipHandlers(pool: Pool): SomeHandlers<'addMember' | 'removeMember'> {
  return {
    addMember: ({ params: { organizationId }, body: { personId } }, { actor }) =>
      audited(pool, actor, async (client, note) => {
        const inside = new AdminReader(client);
        await findOrganization(inside, organizationId);
        await findPerson(inside, personId);
        const added = await new AccessStore(client).addMember(organizationId, personId);
        if (added) note({ action: 'member.added', targetId: personId, organizationId });
        return ok;
      }),

    removeMember: ({ params: { organizationId, personId } }, { actor }) =>
      audited(pool, actor, async (client, note) => {
        const inside = new AdminReader(client);
        await findOrganization(inside, organizationId);
        await findPerson(inside, personId);
        const removed = await new AccessStore(client).removeMember(organizationId, personId);
        if (removed) note({ action: 'member.removed', targetId: personId, organizationId });
        return ok;
      }),
  };
}

export function personHandlers(pool: Pool): SomeHandlers<'createPerson' | 'listPeople' | 'getPerson' | 'renamePerson'> {
  const reader = new AdminReader(pool);
  return {
    createPerson: ({ body: { name, organizationIds } }, { actor }) =>
      audited(pool, actor, async (client, note) => {
        const inside = new AdminReader(client);
        const store = new AccessStore(client);
        for (const organizationId of organizationIds) await findOrganization(inside, organizationId);
        const id = await store.createPerson(name);
        note({ action: 'person.created', targetId: id, details: { name } });
        for (const organizationId of organizationIds) {
          const added = await store.addMember(organizationId, id);
          if (added) note({ action: 'member.added', targetId: id, organizationId });
        }
        return { person: await findPerson(inside, id) };
      }),

    listPeople: async ({ query: { limit, ...wanted } }) => {
      const { page, nextCursor } = pageOf(await reader.people({ ...wanted, limit: limit + 1 }), limit);
      return { people: page, nextCursor };
    },

    getPerson: async ({ params: { personId } }) => ({ person: await findPerson(reader, personId) }),

    renamePerson: ({ params: { personId: id }, body: { name } }, { actor }) =>
      audited(pool, actor, async (client, note) => {
        await lockRow(client, 'people', id);
        const before = await findPerson(new AdminReader(client), id);
        if (before.name === name) return { person: before };
        await new AccessStore(client).renamePerson(id, name);
        note({ action: 'person.renamed', targetId: id, details: { name, was: before.name } });
        return { person: { ...before, name } };
      }),
  };
}

/** Returns the organization. Throws AdminRefused, as does the function below. */
export async function findOrganization(reader: AdminReader, id: string) {
  const [organization] = await reader.organizations({ id });
  if (organization === undefined) throw missing('organization', id);
  return organization;
}

export async function findPerson(reader: AdminReader, id: string) {
  const [person] = await reader.people({ id });
  if (person === undefined) throw missing('person', id);
  return person;
}
