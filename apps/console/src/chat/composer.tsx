import { useEffect, useRef, type FormEvent } from 'react';
import { AttachmentPrimitive, ComposerPrimitive, useAui, useAuiState } from '@assistant-ui/react';
import { ActionIcon, Button, Group, Progress, Text } from '@mantine/core';
import { IconArrowUp, IconPaperclip, IconPlayerStopFilled, IconX } from '@tabler/icons-react';
import { BusyButton } from './busy-button.tsx';
import classes from './chat.module.css';
import { withoutDirections } from './markdown-rules.ts';

interface Props {
  /** Stops the active Run; null if none is active. */
  stop: (() => Promise<void>) | null;
  /** Why nothing can be sent; null if something can. */
  closed: string | null;
  /** What was typed and not sent, by place. */
  unsent: Map<string, string>;
  place: string;
}

/** The field for the next message. Enter sends, Shift+Enter starts a new line, and Escape stops the answer. */
export function Composer({ stop, closed, unsent, place }: Props) {
  useUnsent(unsent, place);
  const isBlank = useAuiState(({ composer }) => composer.text.trim() === '');
  const canSend = useAuiState(({ composer }) => composer.canSend) && !isBlank;
  // Files alone are no message.
  const refuse = (event: FormEvent) => {
    if (!canSend) event.preventDefault();
  };
  return (
    <ComposerPrimitive.Root className={classes.composer} onSubmit={refuse}>
      <div className={classes.attachments}>
        <ComposerPrimitive.Attachments>{() => <AttachmentChip />}</ComposerPrimitive.Attachments>
      </div>
      <ComposerPrimitive.Input
        className={classes.input}
        placeholder={closed ?? 'Message'}
        aria-label="Message"
        minRows={1}
        maxRows={8}
        autoFocus
        // The focus may be on a button of a message.
        unstable_focusOnRunStart={false}
        disabled={closed !== null}
        unstable_insertNewlineOnTouchEnter
      />
      <Group gap="xs" justify="space-between" wrap="nowrap">
        <ComposerPrimitive.AddAttachment asChild multiple>
          <ActionIcon aria-label="Attach files" title="Attach files" size="lg" disabled={closed !== null}>
            <IconPaperclip size={18} />
          </ActionIcon>
        </ComposerPrimitive.AddAttachment>
        {stop ? (
          <BusyButton variant="default" leftSection={<IconPlayerStopFilled size={14} />} act={stop}>
            Stop
          </BusyButton>
        ) : (
          <Button type="submit" disabled={!canSend} rightSection={<IconArrowUp size={14} />}>
            Send
          </Button>
        )}
      </Group>
    </ComposerPrimitive.Root>
  );
}

/** Keeps what is typed while another chat is open. */
function useUnsent(unsent: Map<string, string>, place: string): void {
  const aui = useAui();
  const text = useAuiState(({ composer }) => composer.text);
  const kept = useRef(unsent.get(place));
  useEffect(() => {
    if (kept.current) aui.composer.setText(kept.current);
    // Only once. Later, the field knows better.
    kept.current = undefined;
  }, [aui]);
  useEffect(() => void unsent.set(place, text), [unsent, place, text]);
}

function AttachmentChip() {
  const name = useAuiState(({ attachment }) => attachment.name);
  const progress = useAuiState(({ attachment: { status } }) => (status.type === 'running' ? status.progress : null));
  const hasFailed = useAuiState(({ attachment: { status } }) => status.type === 'incomplete');
  return (
    <AttachmentPrimitive.Root className={classes.attachment} data-failed={hasFailed || undefined}>
      <Text size="xs" truncate>
        {withoutDirections(name)}
      </Text>
      {hasFailed && (
        <Text size="xs" c="red">
          Not uploaded
        </Text>
      )}
      {progress !== null && <Progress value={100 * progress} size="xs" w={60} aria-label={`Uploading ${name}`} />}
      <AttachmentPrimitive.Remove asChild>
        <ActionIcon size="xs" aria-label={`Remove ${name}`}>
          <IconX size={12} />
        </ActionIcon>
      </AttachmentPrimitive.Remove>
    </AttachmentPrimitive.Root>
  );
}
