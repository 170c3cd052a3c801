import { agentManifestSchema } from './manifest.ts';
import { patternIssues } from './pattern-issues.ts';

const issuesOf = (pattern: string) =>
  patternIssues(
    agentManifestSchema.parse({
      name: 'any',
      harness: { name: 'model' },
      toolServers: [{ name: 'mail', command: 'any' }],
      tools: [
        { pattern: '*', policy: 'allow' },
        { pattern, policy: 'ask' },
      ],
    }),
  );

it.each(['*', 'delete_file', '*_file', 'mail__send', 'mail__*', 'ma*', '*send*', 'mail_*'])(
  'the pattern %s may fit a tool',
  (pattern) => expect(issuesOf(pattern)).toEqual([]),
);

it.each(['delet_file', 'send', 'mail_send', 'mails__*', 'send_*', 'Mail__*'])(
  'the pattern %s can fit none, and all there may be are named',
  (pattern) => {
    const message = 'matches no tool; available: list_files, read_file, write_file, edit_file, delete_file, mail__*';
    expect(issuesOf(pattern)).toEqual([{ path: ['tools', 1, 'pattern'], at: 'value', message }]);
  },
);
