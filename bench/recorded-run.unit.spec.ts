import { template } from './recorded-run.ts';

const statement = {
  name: 'append',
  text: 'select …',
  values: ['T1', 3, null, true, '[{"run":"R1","thread":"T1"},"R1"]', ['R1', 'other'], 'key.1', 'unchanged'],
};

describe('template', () => {
  it('puts other ids in the places of the recorded ones, whatever the type of the parameter', () => {
    expect(template(statement, ['T1', 'R1', 'key.1'])(['T2', 'R2', 'key.2'])).toEqual({
      name: 'append',
      text: 'select …',
      values: ['T2', 3, null, true, '[{"run":"R2","thread":"T2"},"R2"]', ['R2', 'other'], 'key.2', 'unchanged'],
    });
  });

  it('takes ids as they stand, not as patterns', () => {
    const likeThePattern = { ...statement, values: ['key.1', 'keyX1'] };
    expect(template(likeThePattern, ['key.1'])(['new'])).toMatchObject({ values: ['new', 'keyX1'] });
  });

  it('with the recorded ids gives the recorded statement', () => {
    const ids = ['T1', 'R1', 'key.1'];
    expect(template(statement, ids)(ids)).toEqual(statement);
  });
});
