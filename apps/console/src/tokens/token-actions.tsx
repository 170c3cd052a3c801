import { useState } from 'react';
import { Alert, Button, Group, Select, Text } from '@mantine/core';
import type { TokenRecord } from '#contract';
import { post } from '../api/client.ts';
import { useAction } from '../components/action.ts';
import { ActionButton } from '../components/action-button.tsx';
import { Dialog } from '../components/dialog.tsx';
import { formatTime } from '../components/format.ts';
import { ErrorNote } from '../components/query-state.tsx';
import { SecretDialog, useSecret } from './secret-dialog.tsx';
import { LimitToken } from './token-limits.tsx';
import { DEFAULT_GRACE, GRACES } from './token-look.ts';

/** What can be done to a token that still is good. */
export function TokenActions({ token }: { token: TokenRecord }) {
  const revoke = useAction(() => post('/tokens/{tokenId}/revoke', { params: { tokenId: token.id } }), {
    done: `${token.name} is revoked.`,
    ask: {
      title: `Revoke ${token.name}?`,
      message: 'Within 5 s it is rejected, and its streams and console sessions end. This cannot be undone.',
      action: 'Revoke',
      isDangerous: true,
    },
  });
  return (
    <Group gap="xs" miw={{ base: 0, sm: 250 }} justify="flex-end">
      <LimitToken token={token} />
      <RotateToken token={token} />
      <ActionButton action={revoke} label="Revoke" target={`token ${token.name}`} color="red" variant="outline" />
    </Group>
  );
}

function RotateToken({ token }: { token: TokenRecord }) {
  const [isOpen, setOpen] = useState(false);
  const [grace, setGrace] = useState(DEFAULT_GRACE);
  const secret = useSecret(() =>
    post('/tokens/{tokenId}/rotate', { params: { tokenId: token.id }, body: { graceSeconds: grace.seconds } }),
  );
  const close = () => {
    setOpen(false);
    setGrace(DEFAULT_GRACE);
    secret.forget();
  };
  return (
    <>
      <Button variant="default" onClick={() => setOpen(true)} aria-label={`Rotate token ${token.name}`}>
        Rotate
      </Button>
      <Dialog
        opened={isOpen && secret.minted === null}
        title={`Rotate ${token.name}?`}
        action="Rotate"
        isDangerous
        isBusy={secret.isBusy}
        onSubmit={() => void secret.ask()}
        onClose={close}
      >
        {secret.error && <ErrorNote error={secret.error} />}
        <Text size="sm" mb="sm">
          The token gets a new secret. It keeps its id and everything it owns.
        </Text>
        {token.oldSecretUntil !== null && (
          <Alert color="orange" mb="sm">
            The secret before the last rotation works until {formatTime(token.oldSecretUntil)}. It stops working when
            you rotate again.
          </Alert>
        )}
        <Select
          label="The old secret works"
          data={GRACES.map(({ label }) => label)}
          allowDeselect={false}
          value={grace.label}
          onChange={(picked) => setGrace(GRACES.find(({ label }) => label === picked)!)}
        />
      </Dialog>
      <SecretDialog minted={secret.minted} onClose={close} />
    </>
  );
}
