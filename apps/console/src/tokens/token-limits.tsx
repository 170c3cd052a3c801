import { useState } from 'react';
import { Button, Stack, Text } from '@mantine/core';
import type { TokenRecord } from '#contract';
import { post } from '../api/client.ts';
import { useAction } from '../parts/action.ts';
import { Dialog } from '../parts/dialog.tsx';
import { formatCount } from '../parts/format.ts';
import { LimitFields, type LimitForm } from './limit-fields.tsx';

/** The limits in force. */
export function LimitsInForce({ token: { limits } }: { token: TokenRecord }) {
  return (
    <>
      {formatCount(limits.requestsPerMinute)} requests/min
      {limits.maxStreams !== null && (
        <Text size="xs" c="dimmed">
          {formatCount(limits.maxStreams)} streams
        </Text>
      )}
    </>
  );
}

/** The button and the form that set the limits of one token. */
export function LimitToken({ token }: { token: TokenRecord }) {
  const [form, setForm] = useState<LimitForm | null>(null);
  const { requestsPerMinute, maxStreams, kind, name } = token;
  const limit = useAction(
    () => post('/tokens/{tokenId}', { params: { tokenId: token.id }, body: changedLimits(token, form) }),
    { done: `${name} has new limits.` },
  );
  const close = () => setForm(null);
  const submit = async () => {
    if ((await limit.act()) !== undefined) close();
  };
  return (
    <>
      <Button
        variant="default"
        onClick={() => setForm({ requestsPerMinute, maxStreams })}
        aria-label={`Limits of token ${name}`}
      >
        Limits
      </Button>
      <Dialog
        opened={form !== null}
        title={`Limits of ${name}`}
        action="Save"
        isBusy={limit.isBusy}
        onSubmit={() => void submit()}
        onClose={close}
      >
        {form !== null && (
          <Stack gap="sm">
            <Text size="sm">
              An empty field means the default of the token’s kind. Every pod applies a change within 5 s.
            </Text>
            <LimitFields {...{ kind, form }} change={(changed) => setForm({ ...form, ...changed })} />
          </Stack>
        )}
      </Dialog>
    </>
  );
}

/** Returns only the limits that have changed. */
function changedLimits(token: TokenRecord, form: LimitForm | null): Partial<LimitForm> {
  const names = ['requestsPerMinute', 'maxStreams'] as const;
  const changed = names.filter((each) => form !== null && form[each] !== token[each]);
  return Object.fromEntries(changed.map((each) => [each, form![each]]));
}
