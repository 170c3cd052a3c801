import type { TokenRecord } from '#contract';
import { LimitField } from '../components/limit-field.tsx';

/** The limits of the form; null means the default of the token's kind. */
export type LimitForm = Pick<TokenRecord, 'requestsPerMinute' | 'maxStreams'>;

interface Props {
  kind: TokenRecord['kind'];
  form: LimitForm;
  change: (changed: Partial<LimitForm>) => void;
}

/** The bounds that the service accepts. */
const BOUNDS = { min: 1, max: 1_000_000 };

/** The fields for the limits of a token. An operator's token opens no streams. */
export function LimitFields({ kind, form, change }: Props) {
  return (
    <>
      <LimitField
        {...BOUNDS}
        label="Requests per minute"
        placeholder="Default"
        value={form.requestsPerMinute}
        onChange={(requestsPerMinute) => change({ requestsPerMinute })}
      />
      {kind !== 'operator' && (
        <LimitField
          {...BOUNDS}
          label="Open streams per process"
          placeholder="Default"
          value={form.maxStreams}
          onChange={(maxStreams) => change({ maxStreams })}
        />
      )}
    </>
  );
}
