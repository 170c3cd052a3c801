import type { AdminCall, AdminOperations } from '#contract';
import type { LimitForm } from './limit-fields.tsx';
import { expiryAfter } from './token-look.ts';

export type NewToken = NonNullable<AdminCall<AdminOperations['mintToken']>['body']>;

/** What is filled in to mint a token. Only what its kind needs counts. */
export interface TokenForm extends LimitForm {
  kind: NewToken['kind'];
  name: string;
  days: number | null;
  personId: string;
  organizationId: string;
  agentIds: string[];
  allowAttribution: boolean;
}

export const EMPTY_FORM: TokenForm = {
  kind: 'person',
  name: '',
  days: 90,
  personId: '',
  organizationId: '',
  agentIds: [],
  allowAttribution: false,
  requestsPerMinute: null,
  maxStreams: null,
};

/** What is sent; null while something that its kind needs is not filled in. */
export function newTokenOf(form: TokenForm, now: number): NewToken | null {
  const { requestsPerMinute, maxStreams } = form;
  const common = {
    name: form.name.trim(),
    expiresAt: expiryAfter(form.days, now),
    ...(requestsPerMinute !== null && { requestsPerMinute }),
  };
  const streams = maxStreams !== null && { maxStreams };
  if (common.name === '') return null;
  switch (form.kind) {
    case 'operator':
      return { kind: 'operator', ...common };
    case 'person':
      return form.personId === '' ? null : { kind: 'person', personId: form.personId, ...common, ...streams };
    case 'service': {
      const { organizationId, agentIds, allowAttribution } = form;
      if (organizationId === '' || agentIds.length === 0) return null;
      return { kind: 'service', organizationId, agentIds, allowAttribution, ...common, ...streams };
    }
  }
}
