import { useEffect, useRef, type FormEvent, type KeyboardEvent } from 'react';
import { AttachmentPrimitive, ComposerPrimitive, useAui, useAuiState } from '@assistant-ui/react';
import { ActionIcon, Button, Group, Progress, Text } from '@mantine/core';
import { IconArrowUp, IconPaperclip, IconPlayerStopFilled, IconX } from '@tabler/icons-react';
import { BusyButton } from './busy-button.tsx';
import classes from './chat.module.css';
import { withoutDirections } from './markdown-rules.ts';

interface Props {
  /** Stops the active Run; null if none is active. */
  stop: (() => Promise<void>) | null;
  /** Why no message can be sent; null if one can. */
  closed: string | null;
  /** The unsent text of each chat, by Thread id, or by Agent id for a new chat. */
  unsent: Map<string, string>;
  /** The key of this chat in `unsent`. */
  place: string;
}

/** The field for the next message. Enter sends, Shift+Enter starts a new line, and Escape stops the answer. */
export function Composer({ stop, closed, unsent, place }: Props) {
  useUnsent(unsent, place);
  const isBlank = useAuiState(({ composer }) => composer.text.trim() === '');
  const canSend = useAuiState(({ composer }) => composer.canSend) && !isBlank;
  // The service requires text in a message, also if it has files.
  const refuse = (event: FormEvent) => {
    if (!canSend) event.preventDefault();
  };
  // Without this, Enter would start a new line while no message can be sent.
  const keepOnLine = (event: KeyboardEvent) => {
    if (isSending(event) && (stop !== null || !canSend)) event.preventDefault();
  };
  const field = useRef<HTMLTextAreaElement>(null);
  // The Stop button had the focus, and is removed when the Run ends.
  const stopAndReturn = () => stop?.().then(() => field.current?.focus()) ?? Promise.resolve();
  return (
    <ComposerPrimitive.Root className={classes.composer} onSubmit={refuse}>
      <Attachments />
      <ComposerPrimitive.Input
        ref={field}
        className={classes.input}
        onKeyDown={keepOnLine}
        placeholder={closed ?? 'Message'}
        aria-label="Message"
        minRows={1}
        maxRows={8}
        autoFocus
        // Otherwise a Run would take the focus from a button of a message.
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
          <BusyButton variant="default" leftSection={<IconPlayerStopFilled size={14} />} act={stopAndReturn}>
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

/** Keeps the typed text of this chat while another chat is open. */
function useUnsent(unsent: Map<string, string>, place: string): void {
  const aui = useAui();
  const text = useAuiState(({ composer }) => composer.text);
  const kept = useRef(unsent.get(place));
  useEffect(() => {
    if (kept.current) aui.composer.setText(kept.current);
    // Restored only once, so that it does not replace newer text.
    kept.current = undefined;
  }, [aui]);
  useEffect(() => void unsent.set(place, text), [unsent, place, text]);
}

/** Whether the key sends the message. On a touch screen, Enter starts a new line, and only the button sends. */
function isSending({ key, shiftKey, nativeEvent }: KeyboardEvent): boolean {
  const hasTouch = window.matchMedia('(pointer: coarse) and (not (any-pointer: fine))').matches;
  return key === 'Enter' && !shiftKey && !nativeEvent.isComposing && !hasTouch;
}

const Attachments = () => (
  <div className={classes.attachments}>
    <ComposerPrimitive.Attachments>{() => <AttachmentChip />}</ComposerPrimitive.Attachments>
  </div>
);

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
