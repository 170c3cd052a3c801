import { toolPolicies } from './tool-policy.ts';

const tools = [
  { pattern: 'mail.send', policy: 'deny' as const },
  { pattern: 'mail.*', policy: 'allow' as const },
  { pattern: '*_file*', policy: 'ask' as const },
  { pattern: 'a*a', policy: 'deny' as const },
];

it.each([
  ['mail.send', 'deny'],
  ['mail.read', 'allow'],
  ['mail', 'ask'],
  ['write_file', 'ask'],
  ['write_files', 'ask'],
  ['aa', 'deny'],
  ['a', 'allow'],
  ['aba', 'deny'],
  ['abab', 'allow'],
])('%s', (name, policy) => {
  // The tool's own default is the opposite of what is expected, or what is expected when no pattern fits.
  const fallback =
    name === 'mail' ? 'ask' : name === 'a' || name === 'abab' ? 'allow' : policy === 'allow' ? 'deny' : 'allow';
  expect(toolPolicies({ tools })({ name, policy: fallback })).toBe(policy);
});
