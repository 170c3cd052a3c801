import type { Database } from '#platform';
import type { Said } from './client-records.ts';
import type { LogEntry } from './client.ts';
import { groupBy } from './group-by.ts';
import type { ModelCall, ToolUse } from './fake-provider-calls.ts';

/** What a model said and what its tools did is what the Threads show. */
export async function expectOutsideHeld(
  { modelCalls, toolUses }: { modelCalls: readonly ModelCall[]; toolUses: readonly ToolUse[] },
  said: readonly Said[],
  log: readonly LogEntry[],
  database: Database,
): Promise<void> {
  const runIds = new Set(said.map(({ runId }) => runId));
  await expectToolEffects(database, toolUses, runIds);
  expectProvidersWords(
    log,
    modelCalls.filter(({ runId }) => runIds.has(runId)),
    said,
  );
}

/** What a tool server knows of a call that came to it. */
export type UsedTool = Pick<ToolUse, 'runId' | 'toolCallId' | 'tookEffect'>;

interface StoredTool {
  toolCallId: string;
  toolName: string;
  outcome: string;
}

/** I10: what the stream says of each call is what the tool server knows of it. */
export async function expectToolEffects(
  { pool }: Database,
  toolUses: readonly UsedTool[],
  runIds: ReadonlySet<string>,
): Promise<void> {
  const { rows } = await pool.query<StoredTool>(
    `select data->>'toolCallId' as "toolCallId", data->>'toolName' as "toolName", data->>'outcome' as outcome from events
     where run_id = any ($1) and type = 'tool.completed'`,
    [[...runIds]],
  );
  expect(rows).toHaveLength(runIds.size); // one tool a message
  const uses = groupBy(
    toolUses.filter(({ runId }) => runIds.has(runId)),
    ({ toolCallId }) => toolCallId,
  );
  const wrong = rows.filter((tool) => !isAllowed(tool, uses.get(tool.toolCallId) ?? []));
  expect(wrong.map((tool) => ({ ...tool, uses: uses.get(tool.toolCallId) }))).toEqual([]);
  const known = new Set(rows.map(({ toolCallId }) => toolCallId));
  expect([...uses.keys()].filter((id) => !known.has(id))).toEqual([]);
}

function isAllowed({ toolName, outcome }: StoredTool, uses: readonly UsedTool[]): boolean {
  const effects = uses.filter(({ tookEffect }) => tookEffect).length;
  if (toolName.endsWith('lookup')) return outcome === 'ok' && effects >= 1;
  const allowed: Record<string, number[]> = { ok: [1], unknown: [0, 1], refused: [0] };
  return uses.length <= 1 && (allowed[outcome] ?? []).includes(effects);
}

/** Each message of each Run is what the provider said in the last attempt at its step, and nothing of the attempts before. */
function expectProvidersWords(log: readonly LogEntry[], calls: readonly ModelCall[], said: readonly Said[]): void {
  const repeated = groupBy(calls, ({ runId, attempt, step }) => `${runId} ${attempt} ${step}`);
  expect([...repeated.values()].filter((same) => same.length > 1)).toEqual([]);
  const last = new Map<string, ModelCall>();
  for (const call of calls) {
    const step = `${call.runId} ${call.step}`;
    if (call.attempt > (last.get(step)?.attempt ?? 0)) last.set(step, call);
  }
  const byRun = groupBy(log, ({ runId }) => runId ?? '');
  const read = said.map(({ runId }) => messagesOf(byRun.get(runId) ?? []));
  expect(read).toEqual(said.map(({ runId }) => [last.get(`${runId} 0`)?.text, last.get(`${runId} 1`)?.text]));
}

/**
 * The messages of a Run's entries: its pieces between cuts and tools, joined (docs/spec/decisions.md#cut-steps). A
 * step that ended tells its usage behind its pieces; a cut behind that, when its worker handed the Run over, voids
 * nothing (docs/choices.md).
 */
export function messagesOf(entries: readonly LogEntry[]): string[] {
  const messages: string[] = [];
  let text = '';
  for (const { type, content } of entries) {
    if (type === 'agent.message.delta') text += content;
    else if (type === 'session.status' && content === 'RESCHEDULING') text = '';
    else if (type.startsWith('tool.') || type === 'usage.updated' || type === 'run.completed') {
      if (text !== '') messages.push(text);
      text = '';
    }
  }
  return messages;
}
