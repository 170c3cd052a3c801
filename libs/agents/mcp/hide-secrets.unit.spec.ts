import { ListToolsResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { measureTurns } from '#testing';
import { hideInError, hideInSlices, hideSecrets, secretTexts } from './hide-secrets.ts';

describe('hiding secrets', () => {
  it('replaces each wherever it stands, in keys too, and leaves the rest as it is', () => {
    const value = { 'a-secret': ['x a-secret, a-secret', 1, null, { deep: 'another-one' }], plain: true };
    const hidden = { '***': ['x ***, ***', 1, null, { deep: '***' }], plain: true };
    expect(hideSecrets(value, secretTexts(['a-secret', 'another-one']))).toEqual(hidden);
  });

  it('hides a longer one before a shorter one that it begins with', () => {
    expect(hideSecrets('secret-and-more', secretTexts(['secret', 'secret-and-more']))).toBe('***');
  });

  it('hides what follows a scheme as well', () => {
    const secrets = secretTexts(['Bearer a-secret']);
    expect(hideSecrets('Bearer a-secret / bearer a-secret', secrets)).toBe('*** / bearer ***');
  });

  it('hides a key of several lines as JSON has it, and its lines alone', () => {
    const key = '-----BEGIN KEY-----\nabc"def\n-----END KEY-----';
    const secrets = secretTexts([key]);
    expect(hideSecrets(`${JSON.stringify({ key })} ${key}`, secrets)).toBe('{"key":"***"} ***');
    expect(hideSecrets('1: abc"def', secrets)).toBe('1: ***');
  });

  it('leaves texts that are too short to be told from others', () => {
    expect(hideSecrets('12345 123456', secretTexts(['12345', '123456', 'on 1']))).toBe('12345 ***');
  });

  it('takes no secret for a pattern', () => {
    expect(hideSecrets('a.*b$&c aXXb', secretTexts(['a.*b$&c']))).toBe('*** aXXb');
  });

  it('makes an error of the same name, with its causes', () => {
    const cause = Object.assign(new TypeError('no a-secret'), { code: 'ECODE' });
    const error = hideInError(new Error('with a-secret', { cause }), ['a-secret']);
    expect([error.message, error.stack?.includes('a-secret')]).toEqual(['with ***', false]);
    expect(error.cause).toMatchObject({ name: 'TypeError', message: 'no ***', code: 'ECODE' });
  });

  it('does not read what a schema says of each part, which may be megabytes', async () => {
    const tools = Array.from({ length: 24_000 }, () => ({}));
    const { error } = ListToolsResultSchema.safeParse({ tools });
    await measureTurns(() => {
      const hidden = hideInError(new Error('outside', { cause: error }), []);
      expect(hidden.cause).toMatchObject({ message: 'The server’s answer does not match the protocol.' });
    });
  });

  it('takes short turns in slices, however many secrets there are', async () => {
    const secrets = secretTexts([Array.from({ length: 1_000 }, (_, i) => `secret line ${i}`).join('\n')]);
    const tool = (name: string, count: number) => ({ name, inputSchema: { text: `${name} `.repeat(count) } });
    const value = [tool('secret line 7', 50_000), ...Array.from({ length: 200 }, () => tool('other', 600)), null, 1];
    let shown: typeof value = [];
    await measureTurns(async () => {
      shown = await hideInSlices(value, secrets);
    });
    expect(shown[0]).toEqual({ ...tool('***', 50_000) });
    expect(shown.slice(1)).toEqual(value.slice(1));
  });
});
