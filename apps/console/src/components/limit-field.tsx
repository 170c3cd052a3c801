import { NumberInput, type NumberInputProps } from '@mantine/core';

interface Props extends Pick<NumberInputProps, 'label' | 'description' | 'placeholder' | 'min' | 'max'> {
  /** Null for an empty field. */
  value: number | null;
  onChange: (value: number | null) => void;
}

/** A field for a whole number that may be left empty. */
export function LimitField({ value, onChange, ...props }: Props) {
  return (
    <NumberInput
      {...props}
      allowDecimal={false}
      allowNegative={false}
      thousandSeparator=","
      value={value ?? ''}
      onChange={(given) => onChange(typeof given === 'number' ? given : null)}
    />
  );
}
