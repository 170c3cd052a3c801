import { createHash } from 'node:crypto';
import type { StepContext } from '../harness.ts';
import type { AgentManifest } from '../manifest.ts';
import { oncePer } from '../once-per.ts';
import { metrics } from './metrics.ts';

/**
 * A difference between a provider and its protocol that Spool works around.
 * `frame`: an event that is blank, null, not JSON or not an object; `part`: an event, block or delta of an unknown type; `field`:
 * a field that is missing, null or of another type; `number`: impossible usage; `end`: an answer without the end that its protocol
 * defines, or a connection that stays open after it; `refused`: a part of the request that the server refused, and that Spool
 * sends differently from then on.
 */
export type OddityKind = 'frame' | 'part' | 'field' | 'number' | 'end' | 'refused';

/**
 * Called for each oddity with its place: the place in the event (`choices[0].delta.content`), or for `refused` the setting that
 * avoids it (`model.quirks.leaveOut: stream_options`). Never called with data of the provider.
 */
export type OnOddity = (kind: OddityKind, place: string) => void;

/** The logger for oddities. */
export interface OddityLog {
  warn: (fields: object, message: string) => void;
}

/** The most places that a process remembers as logged. Beyond that it forgets them all, and logs each one again. */
const MAX_PLACES = 1_000;
const logged = new Set<string>();

/** Returns a callback that counts each oddity, and logs the first one at each place for each version of the agent. */
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
        ? 'provider rejected a part of the request; sending it differently from now on'
        : 'provider response deviated from its protocol';
    log?.warn({ agentId, provider, kind, place }, message);
  };
}

/** Identifies a version of an agent by its manifest. */
const versionOf = oncePer((manifest: AgentManifest) =>
  createHash('sha256').update(JSON.stringify(manifest)).digest('base64'),
);
