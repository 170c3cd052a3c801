import { expectHealthy } from '../../support/checks.ts';
import { isLong } from '../../support/system.ts';
import { describeDeletion } from './deletion.testsuite.ts';
import { describeDownloads } from './downloads.testsuite.ts';
import { describeErrors } from './errors.testsuite.ts';
import { describeEvents } from './events.testsuite.ts';
import { describeFiles } from './files.testsuite.ts';
import { describeIdempotency } from './idempotency.testsuite.ts';
import { describeLimits, describeRateLimit } from './limits.testsuite.ts';
import { describeLog } from './log.testsuite.ts';
import { describeOpenApi } from './openapi.testsuite.ts';
import { describeReasons } from './reasons.testsuite.ts';
import { describeRuns } from './runs.testsuite.ts';
import { describeKeepalive, describeStream } from './stream.testsuite.ts';
import { describeSweep } from './sweep.testsuite.ts';
import { describeThreadList } from './thread-list.testsuite.ts';
import { describeThreads } from './threads.testsuite.ts';
import type { World } from './world.ts';

/**
 * Tests every row of every table of docs/spec/agent-threads-api.md and docs/spec/decisions.md, up to its limits
 * (docs/spec/decisions.md#limits), against one running system. `areas: 'queue'` leaves out areas that no queue
 * backend can change. The night runs them on both backends.
 */
export function describeContract(world: World, { areas = 'all' }: { areas?: 'all' | 'queue' } = {}): void {
  beforeAll(() => world.start(), 120_000);
  afterAll(async () => {
    // Whatever was asked for and refused: every invariant holds.
    try {
      await expectHealthy(world.database);
    } finally {
      await world.stop();
    }
  }, 60_000);

  describeEvents(world);
  describeLog(world);
  describeRuns(world);
  describeStream(world);
  describeRateLimit(world);
  describeDeletion(world);
  if (areas === 'queue' && !isLong) return;

  describeThreads(world);
  describeThreadList(world);
  describeFiles(world);
  describeIdempotency(world);
  describeErrors(world);
  describeReasons(world);
  describeSweep(world);
  describeLimits(world);
  describeKeepalive(world);
  describeDownloads(world);
  describeOpenApi(world);
}
