import { z } from 'zod';
import type { RunLimits } from '#domain';

const DAY_MS = 24 * 60 * 60 * 1000;
const limit = (fallbackMs: number, maxMs: number) => z.number().int().min(1).max(maxMs).default(fallbackMs);

/** Time limits in milliseconds (decisions, section 3), and how often a Run may be lost or step. */
const limitsSchema = z.object({
  /** Waiting for nothing but a free worker. */
  queueMs: limit(10 * 60 * 1000, 7 * DAY_MS),
  /** Working, all claims of a Run together. */
  workMs: limit(60 * 60 * 1000, 7 * DAY_MS),
  /** Waiting for a person. */
  waitMs: limit(7 * DAY_MS, 365 * DAY_MS),
  /** Losses in a row that fail the Run. */
  maxLosses: z.number().int().min(1).max(100).default(3),
  /** Model calls of one Run; tools are not counted, a step asks for as many as it likes. */
  maxSteps: z.number().int().min(1).max(10_000).default(100),
});

/** What a version of an agent says: stored with its defaults filled in, and never changed. */
export const agentManifestSchema = z.object({
  name: z.string().min(1).max(255),
  description: z.string().max(4_000).default(''),
  kind: z.enum(['pet', 'cattle']).default('cattle'),
  /** Which harness runs the agent, and that harness's own settings. */
  harness: z.looseObject({ name: z.string().min(1) }),
  /** Which tools may run: the first pattern that fits decides, else the tool's own default. `*` fits any characters. */
  tools: z
    .array(z.object({ pattern: z.string().min(1).max(255), policy: z.enum(['allow', 'ask', 'deny']) }))
    .max(1_000)
    .default([]),
  limits: limitsSchema.prefault({}),
  /** What a message does while a Run of its Thread is active (decisions, section 3). */
  whenBusy: z.enum(['reject', 'enqueue', 'interrupt']).default('reject'),
});

export type AgentManifest = z.infer<typeof agentManifestSchema>;
/** A manifest as it is written: what has a default may be left out. */
export type AgentManifestInput = z.input<typeof agentManifestSchema>;

/** The part of an agent's limits that each of its Runs keeps. */
export function runLimits({ limits }: Pick<AgentManifest, 'limits'>): RunLimits {
  const { queueMs, workMs, waitMs, maxLosses } = limits;
  return { queueMs, workMs, waitMs, maxLosses };
}
