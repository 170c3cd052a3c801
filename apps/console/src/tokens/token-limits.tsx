import { Text } from '@mantine/core';
import type { TokenRecord } from '#contract';
import { post } from '../api/client.ts';
import { formatCount } from '../components/format.ts';
import { LimitsButton } from '../components/limits-button.tsx';
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
  const { id: tokenId, requestsPerMinute, maxStreams, kind, name } = token;
  return (
    <LimitsButton<LimitForm>
      of="token"
      name={name}
      limits={{ requestsPerMinute, maxStreams }}
      hint="An empty field means the default of the token’s kind. Every pod applies a change within 5 s."
      save={(form) => post('/tokens/{tokenId}', { params: { tokenId }, body: changedLimits(token, form) })}
    >
      {(form, change) => <LimitFields {...{ kind, form, change }} />}
    </LimitsButton>
  );
}

/** Returns only the limits that have changed. */
function changedLimits(token: TokenRecord, form: LimitForm): Partial<LimitForm> {
  const names = ['requestsPerMinute', 'maxStreams'] as const;
  const changed = names.filter((each) => form[each] !== token[each]);
  return Object.fromEntries(changed.map((each) => [each, form[each]]));
}
