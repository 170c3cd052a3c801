import { quickstartFile } from './quickstart.ts';

describe('quickstart file of a database', () => {
  const other = 'postgres://spool:secret@db.example:5432/spool';

  it('is quickstart.env for the embedded database', () => {
    expect(quickstartFile('.data', undefined)).toBe('.data/quickstart.env');
  });

  it('differs for each other database, but not for its users, and contains no password', () => {
    const file = quickstartFile('.data', other);
    expect(file).toMatch(/^\.data\/quickstart-spool-[0-9a-f]{8}\.env$/);
    expect(quickstartFile('.data', other.replace('spool:secret', 'ann'))).toBe(file);
    expect(quickstartFile('.data', other.replace('db.', 'other.'))).not.toBe(file);
    expect(quickstartFile('.data', other.replace(/spool$/, 'spool2'))).not.toBe(file);
  });
});
