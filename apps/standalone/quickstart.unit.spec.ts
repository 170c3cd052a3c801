import { quickstartFile } from './quickstart.ts';

describe('the file with the tokens of a database', () => {
  const other = 'postgres://spool:secret@db.example:5432/spool';

  it('is quickstart.env for the embedded one', () => {
    expect(quickstartFile('.data', undefined)).toBe('.data/quickstart.env');
  });

  it('is another one for each other database, whoever connects, and says nothing of a password', () => {
    const file = quickstartFile('.data', other);
    expect(file).toMatch(/^\.data\/quickstart-spool-[0-9a-f]{8}\.env$/);
    expect(quickstartFile('.data', other.replace('spool:secret', 'ann'))).toBe(file);
    expect(quickstartFile('.data', other.replace('db.', 'other.'))).not.toBe(file);
    expect(quickstartFile('.data', other.replace(/spool$/, 'spool2'))).not.toBe(file);
  });
});
