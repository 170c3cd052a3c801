import { isMisconfigured } from './misconfigured.ts';
import { NoToolList } from './tool-list.ts';

const failed = (more: object): Error => Object.assign(new Error('It failed.'), more);

const refused = (code: number): Error => failed({ name: 'McpError', code: -32001, cause: failed({ code }) });

it.each<[string, unknown, boolean]>([
  ['an address that is not allowed', failed({ name: 'AddressRefused' }), true],
  ['a program that does not exist', failed({ code: 'ENOENT' }), true],
  ['a credential that is refused', failed({ code: 401 }), true],
  ['a list of tools that is none', new NoToolList(), true],
  ['a service that refuses for now', failed({ code: 503 }), false],
  ['a service that does not listen', failed({ code: 'ECONNREFUSED' }), false],
  ['a session that is over', refused(404), false],
  ['a request without the right', refused(401), true],
  ['a connection that is refused as not found', failed({ name: 'ServerUnavailable', cause: refused(404) }), true],
  ['an address without a server', failed({ code: 404 }), true],
  ['what is no error', 'ENOENT', false],
])('%s, also as a cause', (_what, error, is) => {
  expect(isMisconfigured(error)).toBe(is);
  expect(isMisconfigured(new Error('Outer.', { cause: error }))).toBe(is);
});

it('ends where causes go round', () => {
  const error = failed({});
  error.cause = error;
  expect(isMisconfigured(error)).toBe(false);
});
