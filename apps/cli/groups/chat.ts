import type { ChatOptions } from '../chat/access.ts';
import type { CommandSpec } from '../command-spec.ts';
import { CommandError } from '../exit-codes.ts';
import type { Options } from '../options.ts';

export const chat: CommandSpec<string[], Options & ChatOptions> = {
  usage: 'chat [agent]',
  description: 'Chat with an Agent. Without a terminal, standard input is one message.',
  options: [
    { flags: '--org <org>', description: 'organization of the Agent' },
    { flags: '--continue', description: 'continue your newest chat with this Agent' },
    { flags: '--thread <threadId>', description: 'continue one of your chats' },
    { flags: '-y, --yes', description: 'allow every tool call' },
  ],
  examples: [['chat'], ['chat guide --continue'], ['chat guide --yes < question.txt', 'without a terminal']],
  async run(session, [agent], options) {
    if (session.json)
      throw new CommandError('usage', 'chat does not support --json; without a terminal, it prints only the answer.');
    if (options['local']) throw new CommandError('usage', 'chat needs the service; run it without --local.');
    // Imported here, so that other commands start without loading the client.
    const { chat: talk } = await import('../chat/chat.ts');
    await talk(session, agent, options);
  },
};
