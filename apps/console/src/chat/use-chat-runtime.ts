import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import {
  MessageNotSentError,
  useExternalStoreRuntime,
  type AppendMessage,
  type AssistantRuntime,
  type ThreadMessageLike,
} from '@assistant-ui/react';
import type { Message } from '#client';
import type { ThreadActions, ThreadView } from '#client/react';
import { reportFailure } from '../components/action.ts';
import type { Access } from './access.ts';
import { DraftAttachments } from './attachments.ts';
import { withSending, type Sending } from './sending.ts';

interface Parts {
  access: Access;
  thread: ThreadView & ThreadActions;
  threadId: string | null;
  /** Called with the Thread of a first message, and whether this conversation is still shown. */
  onCreated: (threadId: string, isShown: boolean) => void;
  /** What was typed and not sent, by Thread, or by Agent for a new chat. */
  unsent: Map<string, string>;
}

/** Returns assistant-ui's runtime, with the Thread as its external store. */
export function useChatRuntime({ access, thread, threadId, onCreated, unsent }: Parts): AssistantRuntime {
  const { client, agentId } = access;
  const attachments = useMemo(() => new DraftAttachments(client, agentId), [client, agentId]);
  const [sending, setSending] = useState<Sending | null>(null);
  const isShown = useRef(true);
  useEffect(() => {
    isShown.current = true;
    return () => void (isShown.current = false);
  }, []);
  const { messages, send, loadEarlier, interrupt } = thread;
  const shown = useMemo(() => withSending(messages, sending), [messages, sending]);

  const onNew = useCallback(
    async (message: AppendMessage) => {
      const text = message.content.map((part) => (part.type === 'text' ? part.text : '')).join('');
      const files = attachments.draftsOf(message.attachments ?? []);
      const pending = { text, known: new Set(messages.map(({ id }) => id)), runId: null };
      setSending(pending);
      try {
        const run =
          threadId === null
            ? await client.agent(agentId).send(text, { userId: await access.userId(), files })
            : await send(text, { files });
        setSending({ ...pending, runId: run.id });
        if (threadId === null) onCreated(run.threadId, isShown.current);
      } catch (error) {
        setSending(null);
        reportFailure(error as Error);
        // Returns text and files to the composer, which may be gone.
        if (!isShown.current) unsent.set(threadId ?? agentId, text);
        throw new MessageNotSentError((error as Error).message);
      }
    },
    [access, agentId, attachments, client, messages, onCreated, send, threadId, unsent],
  );

  return useExternalStoreRuntime<Message>({
    messages: shown,
    convertMessage,
    isRunning: thread.isActive,
    isSendDisabled: sending?.runId === null || thread.isSending || thread.status === 'ended',
    hasEarlier: thread.hasEarlier,
    onLoadEarlier: () => loadEarlier().catch(reportFailure),
    onNew,
    onCancel: () => interrupt().catch(reportFailure),
    adapters: { attachments },
  });
}

/** The rows render parts by themselves, from the message that is passed along. */
const convertMessage = (message: Message): ThreadMessageLike => ({
  id: message.id,
  role: message.role === 'user' ? 'user' : 'assistant',
  createdAt: new Date(message.createdAt),
  content: [],
  metadata: { custom: { message } },
});
