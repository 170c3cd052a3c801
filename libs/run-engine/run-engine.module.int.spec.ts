import { Test } from '@nestjs/testing';
import { pino } from 'pino';
import { loadConfig, PlatformModule } from '#platform';
import { QueueControls } from '#run-queue';
import { createTestDatabase, type TestDatabase } from '#testing';
import { RunEngineModule } from './run-engine.module.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

it('applies the cap of slots in a worker before any heartbeat is known', async () => {
  const config = loadConfig({
    ...{ DATABASE_URL: database.url, WORKER_SLOTS: '16' },
    SLOTS_PERCENT_PER_ORGANIZATION: '50',
  });
  const platform = PlatformModule.forRoot(config, pino({ level: 'silent' }));
  const module = await Test.createTestingModule({ imports: [platform, RunEngineModule] }).compile();
  try {
    expect(await module.get(QueueControls).slotsPerOrganization()).toBe(8);
  } finally {
    await module.close();
  }
});
