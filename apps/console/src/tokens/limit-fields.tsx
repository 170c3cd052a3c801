import { NumberInput } from '@mantine/core';
import type { TokenRecord } from '#contract';

/** The limits of the form; null means the default of the token's kind. */
export type LimitForm = Pick<TokenRecord, 'requestsPerMinute' | 'maxStreams'>;

interface Props {
  kind: TokenRecord['kind'];
  form: LimitForm;
  change: (changed: Partial<LimitForm>) => void;
}

/** The fields for the limits of a token. An operator's token opens no streams. */
export function LimitFields({ kind, form, change }: Props) {
  return (
    <>
      <Limit
        label="Requests per minute"
        value={form.requestsPerMinute}
        onChange={(requestsPerMinute) => change({ requestsPerMinute })}
      />
      {kind !== 'operator' && (
        <Limit
          label="Open streams per process"
          value={form.maxStreams}
          onChange={(maxStreams) => change({ maxStreams })}
        />
      )}
    </>
  );
}

/** The largest value that the service accepts. */
const MAX = 1_000_000;

interface LimitProps {
  label: string;
  value: number | null;
  onChange: (value: number | null) => void;
}

function Limit({ label, value, onChange }: LimitProps) {
  return (
    <NumberInput
      label={label}
      placeholder="Default"
      min={1}
      max={MAX}
      allowDecimal={false}
      allowNegative={false}
      thousandSeparator=","
      value={value ?? ''}
      onChange={(given) => onChange(typeof given === 'number' ? given : null)}
    />
  );
}
