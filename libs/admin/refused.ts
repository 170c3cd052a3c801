import type { AdminErrorCode } from '#contract';

/** The refusal of an operation. Nothing was changed. */
export class AdminRefused extends Error {
  override name = 'AdminRefused';

  constructor(
    readonly code: Extract<AdminErrorCode, 'invalid_request' | 'not_found' | 'conflict'>,
    message: string,
  ) {
    super(message);
  }
}

type Thing =
  | 'organization'
  | 'person'
  | 'token'
  | 'Agent'
  | 'version'
  | 'Thread'
  | 'Run'
  | 'file'
  | 'confirmation'
  | 'bulk action';

export const missing = (what: Thing, id: string | number): AdminRefused =>
  new AdminRefused('not_found', `There is no ${what} ${id}.`);
