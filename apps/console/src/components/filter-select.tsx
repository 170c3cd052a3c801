import { Select } from '@mantine/core';

interface Props {
  label: string;
  /** '' for none. */
  value: string;
  onChange: (value: string) => void;
  data: { value: string; label: string }[] | string[];
  searchable?: boolean;
}

/** One of few values, or any. */
export function FilterSelect({ value, onChange, ...props }: Props) {
  return (
    <Select
      {...props}
      placeholder="Any"
      clearable
      w={170}
      value={value || null}
      onChange={(chosen) => onChange(chosen ?? '')}
    />
  );
}
