import type { Pool } from 'pg';
import type { AgentCatalogue, AllowingSetting } from '#agents';
import type { DoctorCheck } from '#contract';
import { parseList, pauseIfLong, type Config } from '#platform';
import { AdminReader } from './reader.ts';

type Found = Pick<DoctorCheck, 'status' | 'message'>;

const PAGE = 100;
/** The most agents that the message names. */
const MAX_NAMED = 50;

/**
 * Finds the published agents that cannot run here or lack tools, and the settings that would allow what they name. Also works
 * before the migration of an upgrade.
 */
export async function checkAgents(pool: Pool, agents: AgentCatalogue, config: Config): Promise<Found> {
  const unready: string[] = [];
  const needs: AllowingSetting[] = [];
  for await (const { id, name, liveVersion } of publishedAgents(new AdminReader(pool))) {
    const manifest = await agents.version(id, liveVersion);
    if (manifest === null) continue;
    const problems = [...(await agents.readiness(manifest)), ...(await agents.warnings(manifest))];
    if (problems.length > 0)
      unready.push(`${name} (${id}): ${problems.map(({ detail }) => detail.replace(/\.$/, '')).join('; ')}`);
    needs.push(...(await agents.notAllowed(manifest)).flatMap(({ error }) => error.needs ?? []));
    await pauseIfLong();
  }
  if (unready.length === 0) return { status: 'ok', message: 'All published Agents can run here.' };
  const more = unready.length > MAX_NAMED ? [`${unready.length - MAX_NAMED} more`] : [];
  const named = [...unready.slice(0, MAX_NAMED), ...more].join(' · ');
  const lines = settingsThatAllow(needs, config);
  const toAdd = lines.length > 0 ? ` To allow what they name, set: ${lines.join(' ')}` : '';
  return { status: 'warning', message: `Published Agents that cannot run here, or lack tools: ${named}.${toAdd}` };
}

async function* publishedAgents(reader: AdminReader) {
  for (let cursor: string | undefined; ;) {
    const page = await reader.agents({ deleted: false, limit: PAGE, cursor });
    for (const { id, name, published, liveVersion } of page)
      if (published && liveVersion !== null) yield { id, name, liveVersion };
    cursor = page.at(-1)?.id;
    if (page.length < PAGE) return;
  }
}

/** Returns `NAME=VALUE` of each setting, with its present entries. */
function settingsThatAllow(needs: readonly AllowingSetting[], config: Config): string[] {
  const settings = new Set(needs.map(({ setting }) => setting));
  return [...settings].map((setting) => {
    const present = setting === 'TOOL_SERVER_NETWORK' ? [] : parseList(config[setting]);
    const added = needs.filter((need) => need.setting === setting).map(({ entry }) => entry);
    return `${setting}=${[...new Set([...present, ...added])].join(',')}`;
  });
}
