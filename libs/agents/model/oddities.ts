import { createHash } from 'node:crypto';
import { metrics } from '#platform';
import type { StepContext } from '../harness.ts';
import type { AgentManifest } from '../manifest.ts';
import { oncePer } from '../once-per.ts';

/**
 * What a provider does that its protocol does not have, and that is worked around:
 * `frame`: an event that is blank, null, no JSON or no object; `part`: an event, block or delta of an unknown type; `field`: a field
 * that is missing, null or of another type; `number`: usage that cannot be; `end`: an answer without the protocol's own end, or a
 * connection that stays open after it; `refused`: a part of the request that the server refused, sent differently from then on.
 */
export type OddityKind = 'frame' | 'part' | 'field' | 'number' | 'end' | 'refused';

/**
 * Told of each oddity, with its place: in the event (`choices[0].delta.content`), or for `refused` the manifest's setting that
 * avoids it (`model.quirks.leaveOut: stream_options`). Never with anything that the provider sent.
 */
export type OnOddity = (kind: OddityKind, place: string) => void;

/** Where oddities are counted and logged. */
export interface OddityLog {
  warn: (fields: object, message: string) => void;
}

/** The most places that a process remembers to have logged; then it forgets them all, and logs them again. */
const MAX_PLACES = 1_000;
const logged = new Set<string>();

/** Counts each oddity of an agent's provider, and logs the first at each place for each version of the agent. */
export function oddityReport(
  { agentId, manifest }: Pick<StepContext, 'agentId' | 'manifest'>,
  log?: OddityLog,
): OnOddity {
  return (kind, place) => {
    const { provider } = manifest.model!;
    metrics.providerOddities.inc({ provider, kind });
    const key = [agentId, versionOf(manifest), kind, place].join(' ');
    if (logged.has(key)) return;
    if (logged.size >= MAX_PLACES) logged.clear();
    logged.add(key);
    const message =
      kind === 'refused'
        ? 'a model provider refused a part of the request; it is sent differently from now on'
        : 'a model provider sends what its protocol does not have';
    log?.warn({ agentId, provider, kind, place }, message);
  };
}

/** A manifest is what makes a version of an agent. */
const versionOf = oncePer((manifest: AgentManifest) =>
  createHash('sha256').update(JSON.stringify(manifest)).digest('base64'),
);
