import type { Config } from '../process/config.ts';

/** The default maximum of files and bytes of an organization; null means no limit. */
export interface FileQuota {
  maxFiles: number | null;
  maxBytes: number | null;
}

export const NO_FILE_QUOTA: FileQuota = { maxFiles: null, maxBytes: null };

/** Returns the quota of this installation. */
export function fileQuotaOf(config: Pick<Config, 'ORGANIZATION_FILES' | 'ORGANIZATION_FILE_BYTES'>): FileQuota {
  return { maxFiles: config.ORGANIZATION_FILES ?? null, maxBytes: config.ORGANIZATION_FILE_BYTES ?? null };
}
