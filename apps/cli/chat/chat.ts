import type { Session } from '../session.ts';
import { openAccess, toCommandError, type ChatOptions } from './access.ts';
import { chatOnTerminal } from './terminal.ts';
import { chatPlainly } from './plain.ts';

/** Talks with an Agent until the person leaves, or without a terminal for one message. Throws CommandError. */
export async function chat(session: Session, agent: string | undefined, options: ChatOptions): Promise<void> {
  const access = await openAccess(session, agent, options);
  const talk = session.isTerminal ? chatOnTerminal : chatPlainly;
  await talk(session, access, options.yes === true).catch(toCommandError);
}
