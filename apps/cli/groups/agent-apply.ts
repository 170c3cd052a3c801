import type { AppliedManifest } from '#contract';
import type { CallOf } from '../admin-client.ts';
import { YES, type CommandSpec } from '../command-spec.ts';
import type { Options } from '../options.ts';
import { CommandError } from '../exit-codes.ts';
import { placeProblems, readManifests } from '../manifests.ts';
import { optional, organizationId, personId } from '../resolve.ts';
import type { Session } from '../session.ts';
import { colourDiff, countOf, showInLine } from '../text.ts';

type ApplyOptions = Options & {
  file: string[];
  org: string;
  owner?: string;
  publish?: true;
  dryRun?: true;
};

type ApplyBody = NonNullable<CallOf<'applyManifests'>['body']>;

/** What would become of a manifest; `isPublishing`: it would be published only now. */
interface Planned extends AppliedManifest {
  isPublishing: boolean;
}

export const apply: CommandSpec<[], ApplyOptions> = {
  usage: 'apply',
  description:
    'Create or update Agents from their manifests, all or none. Shows the changes and asks for confirmation.',
  options: [
    {
      flags: '-f, --file <path>',
      description: 'manifest, folder of manifests, or - for standard input; repeatable',
      many: true,
      required: true,
    },
    { flags: '--org <org>', description: 'organization that the Agents belong to', required: true },
    { flags: '--owner <person>', description: 'owner of new Agents; see also: agent owner' },
    { flags: '--publish', description: 'also publish the Agents' },
    { flags: '--dry-run', description: 'only show the changes' },
    YES,
  ],
  examples: [
    ['agent apply -f agents/ --org Acme'],
    ['agent apply -f echo.yaml --org Acme --owner "Jo Doe" --publish'],
    ['agent apply -f - --org Acme --yes < echo.yaml', 'in a script'],
    ['agent apply -f agents/ --org Acme --dry-run', 'changes nothing'],
  ],
  async run(session, _, { file, org, owner, publish = false, dryRun = false }) {
    const files = await readManifests(file);
    const body: ApplyBody = {
      manifests: files.map(({ manifest }) => ({ ...manifest })),
      organizationId: await organizationId(session, org),
      ownerPersonId: await optional(personId, session, owner),
      publish,
    };
    const planned = await plan(session, body).catch(async (error: unknown) => {
      if (!(error instanceof CommandError) || error.exit !== 'usage') throw error;
      throw new CommandError('usage', await placeProblems(error.message, files), { cause: error });
    });
    const known = planned.filter(({ change }) => change !== 'created').map(({ name }) => showInLine(name));
    if (owner !== undefined && known.length > 0)
      session.note(
        `--owner applies only to new Agents. To change the owner of ${known.join(', ')}: spool agent owner.`,
      );
    const changing = planned.filter(({ change, isPublishing }) => change !== 'unchanged' || isPublishing);
    const shown = planned.map((each) => describe(each, session.coloured)).join('\n\n');
    if (dryRun || changing.length === 0) {
      await session.print(planned.map(recordOf), shown);
      session.note(changing.length === 0 ? 'Nothing to change.' : 'Dry run: nothing was changed.');
      return;
    }
    // What is asked about is seen also where the result is for a program.
    if (session.json) session.note(planned.map((each) => describe(each, false)).join('\n\n'));
    else await session.write(`${shown}\n\n`);
    await session.confirm(`Change ${countOf(changing.length, 'Agent')}?`);
    // So that nothing but what was shown is applied.
    const expectedVersions = Object.fromEntries(planned.map((each) => [each.name, versionBefore(each)]));
    const { agents } = await session.call('applyManifests', { body: { ...body, expectedVersions } });
    await session.print(agents, agents.map(summarize).join('\n'));
  },
};

async function plan(session: Session, body: ApplyBody): Promise<Planned[]> {
  const { agents } = await session.call('applyManifests', { body: { ...body, dryRun: true } });
  const planned: Planned[] = [];
  for (const agent of agents) planned.push({ ...agent, isPublishing: await isPublishing(session, agent) });
  return planned;
}

/** `published` tells what would be, and only the Agent what is. */
async function isPublishing(session: Session, { agentId, published }: AppliedManifest): Promise<boolean> {
  if (!published || agentId === null) return published;
  const { agent } = await session.call('getAgent', { params: { agentId } });
  return !agent.published;
}

function versionBefore({ change, version }: AppliedManifest): number {
  if (change === 'created') return 0;
  return change === 'updated' ? version - 1 : version;
}

const recordOf = ({ isPublishing: _, ...record }: Planned): AppliedManifest => record;

function describe(planned: Planned, coloured: boolean): string {
  const { name, change, version, isPublishing, diff, readiness } = planned;
  const what = { created: 'new', updated: `becomes version ${version}`, unchanged: 'unchanged' }[change];
  const lines = [`${showInLine(name)}: ${what}${isPublishing ? ', will be published' : ''}`];
  if (diff !== '') lines.push(colourDiff(diff, coloured));
  lines.push(
    ...readiness.map(({ message, detail }) => `This agent cannot run yet: ${showInLine(`${message}. ${detail}`)}`),
  );
  return lines.join('\n');
}

function summarize({ name, change, version, agentId, published }: AppliedManifest): string {
  const state = published ? 'published' : 'not published';
  return `${showInLine(name)}: ${change}, version ${version}, ${state}, ${agentId}`;
}
