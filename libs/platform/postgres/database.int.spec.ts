import { createTestDatabase, measureTurns, nightTest, type TestDatabase } from '#testing';
import { openDatabase, type Database } from './database.ts';

const CONNECTIONS = 10;

let test: TestDatabase;
let database: Database;

beforeAll(async () => {
  test = await createTestDatabase();
  database = await openDatabase({ url: test.url, applicationName: 'test', maxConnections: CONNECTIONS });
});
afterAll(async () => {
  await database.close();
  await test.drop();
});

nightTest('parses large results of several connections in short turns', async () => {
  const { pool } = database;
  const read = () => pool.query(`select number, repeat('x', 100) as text from generate_series(1, 20000) as number`);
  await measureTurns(() => Promise.all(Array.from({ length: CONNECTIONS }, read)), { maxMs: 40 });
});
