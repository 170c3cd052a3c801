import type { OrganizationRecord } from '#contract';
import { post } from '../api/client.ts';
import { formatBytes } from '../components/format.ts';
import { LimitField } from '../components/limit-field.tsx';
import { LimitsButton } from '../components/limits-button.tsx';

/** The limits in the form. Null means that the limit of the installation applies. */
interface LimitForm {
  runs: number | null;
  maxCount: number | null;
  maxBytes: number | null;
}

/** The largest limit of Runs that the service accepts. */
const MAX_RUNS = 10_000;

/** The button and the form that set the limits of one organization. */
export function LimitOrganization({ organization }: { organization: OrganizationRecord }) {
  const { name, concurrency, files } = organization;
  return (
    <LimitsButton<LimitForm>
      of="organization"
      name={name}
      limits={{ runs: concurrency.runs, maxCount: files.maxCount, maxBytes: files.maxBytes }}
      hint="Runs beyond their limit wait. Files beyond theirs are refused; a lower limit deletes nothing."
      save={(form) => save(organization, form)}
    >
      {(form, change) => <Fields {...{ form, change }} />}
    </LimitsButton>
  );
}

function Fields({ form, change }: { form: LimitForm; change: (changed: Partial<LimitForm>) => void }) {
  return (
    <>
      <LimitField
        label="Runs at the same time"
        placeholder="The installation’s limit"
        min={1}
        max={MAX_RUNS}
        value={form.runs}
        onChange={(runs) => change({ runs })}
      />
      <LimitField
        label="Files"
        placeholder="The installation’s limit"
        min={0}
        max={Number.MAX_SAFE_INTEGER}
        value={form.maxCount}
        onChange={(maxCount) => change({ maxCount })}
      />
      <LimitField
        label="Bytes in all files"
        description={form.maxBytes !== null && formatBytes(form.maxBytes)}
        placeholder="The installation’s limit"
        min={0}
        max={Number.MAX_SAFE_INTEGER}
        value={form.maxBytes}
        onChange={(maxBytes) => change({ maxBytes })}
      />
    </>
  );
}

/** Sends only the limits that have changed. */
async function save({ id, concurrency, files }: OrganizationRecord, form: LimitForm): Promise<void> {
  const { runs, maxCount, maxBytes } = form;
  const params = { organizationId: id };
  if (runs !== concurrency.runs) {
    await post('/organizations/{organizationId}/concurrency', { params, body: { runs } });
  }
  const quota = {
    ...(maxCount !== files.maxCount && { maxCount }),
    ...(maxBytes !== files.maxBytes && { maxBytes }),
  };
  if (Object.keys(quota).length > 0) {
    await post('/organizations/{organizationId}/file-quota', { params, body: quota });
  }
}
