import type { ManagedRun } from '#contract';

/** What a Run was made by, for people. */
export const TRIGGERS: Record<ManagedRun['trigger'], string> = {
  user_prompt: 'Message',
  retry: 'Retry',
  resume: 'Resume',
  system: 'System',
};
