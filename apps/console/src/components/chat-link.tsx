import { Button } from '@mantine/core';
import { IconMessage } from '@tabler/icons-react';

/** Whether this installation serves the page /chat (CHAT_PAGE). */
const hasChat = document.querySelector<HTMLMetaElement>('meta[name="chat-page"]')?.content === 'on';

/** A link to the page /chat. Renders nothing where that page is off. */
export function ChatLink({ agentId, threadId, label }: { agentId: string; threadId?: string; label: string }) {
  if (!hasChat) return null;
  const href = `/chat/${agentId}${threadId === undefined ? '' : `/${threadId}`}`;
  return (
    <Button component="a" href={href} variant="default" leftSection={<IconMessage size={14} />}>
      {label}
    </Button>
  );
}
