import { useCallback, useState } from 'react';
import { Alert, Button, Code, Group, Modal, Text } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import type { MintedTokenAnswer } from '#contract';
import { useCopy } from '../components/copy.ts';
import { formatTime } from '../components/format.ts';

/**
 * Asks the service for a secret and has it shown once. Not a mutation of react-query: its cache would keep the answer for
 * minutes after the dialog is closed.
 */
export function useSecret(call: () => Promise<MintedTokenAnswer>) {
  const [minted, setMinted] = useState<MintedTokenAnswer | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [isBusy, setBusy] = useState(false);
  const queries = useQueryClient();
  const ask = async (): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      setMinted(await call());
    } catch (refused) {
      setError(refused as Error);
    } finally {
      setBusy(false);
      void queries.invalidateQueries();
    }
  };
  const forget = useCallback(() => {
    setMinted(null);
    setError(null);
  }, []);
  return { minted, error, isBusy, ask, forget };
}

/** Closed by its one button only: a click beside it would lose the secret for good. */
export function SecretDialog({ minted, onClose }: { minted: MintedTokenAnswer | null; onClose: () => void }) {
  const { copied, copy } = useCopy(minted?.secret ?? '');
  if (minted === null) return null;
  return (
    <Modal
      opened
      onClose={onClose}
      closeOnClickOutside={false}
      closeOnEscape={false}
      withCloseButton={false}
      title={`The secret of ${minted.token.name}`}
      size="lg"
    >
      <Alert color="orange" icon={<IconAlertTriangle size={18} />} mb="md">
        Copy the secret now. It is shown only once and cannot be read again.
      </Alert>
      <Code block aria-label="Secret" data-secret style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}>
        {minted.secret}
      </Code>
      {minted.token.oldSecretUntil !== null && (
        <Text size="sm" mt="sm">
          The old secret works until {formatTime(minted.token.oldSecretUntil)}.
        </Text>
      )}
      <Group justify="flex-end" mt="lg">
        <Button variant="default" onClick={copy} data-autofocus>
          {copied ? 'Copied' : 'Copy the secret'}
        </Button>
        <Button onClick={onClose}>I have stored it</Button>
      </Group>
    </Modal>
  );
}
