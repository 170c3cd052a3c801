import { useState } from 'react';
import { Autocomplete, type AutocompleteProps } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import type { AdminInput, AdminOperations } from '#contract';
import { useOperation } from '../api/use-operation.ts';

interface Props extends Pick<AutocompleteProps, 'label' | 'placeholder' | 'w'> {
  /** The filter whose values are suggested. */
  of: AdminInput<AdminOperations['suggestFilterValues']>['query']['of'];
  value: string;
  /** Called with a chosen value, or with the typed text after Enter or when the field loses focus. */
  onChange: (value: string) => void;
}

/** A filter by an exact value, which is chosen from suggestions or typed. */
export function FilterSuggest({ of, value, onChange, ...props }: Props) {
  const [typed, setTyped] = useState(value);
  const [applied, setApplied] = useState(value);
  const [isOpen, setOpen] = useState(false);
  if (applied !== value) {
    // Something else changed the value, such as the back button.
    setApplied(value);
    setTyped(value);
  }
  const [wanted] = useDebouncedValue(typed.trim(), 200);
  const { data } = useOperation('/filter-values', { query: { of, text: wanted || undefined } }, { enabled: isOpen });
  const apply = (next: string) => next.trim() !== value && onChange(next.trim());
  return (
    <Autocomplete
      {...props}
      data={data?.values ?? []}
      filter={({ options }) => options}
      value={typed}
      onChange={setTyped}
      onOptionSubmit={apply}
      onDropdownOpen={() => setOpen(true)}
      onBlur={() => apply(typed)}
      // Enter on a highlighted suggestion submits the suggestion.
      onKeyDown={({ key, currentTarget }) => key === 'Enter' && !hasHighlighted(currentTarget) && apply(typed)}
    />
  );
}

function hasHighlighted(field: HTMLElement): boolean {
  const list = document.getElementById(field.getAttribute('aria-controls') ?? '');
  return list !== null && list.querySelector('[data-combobox-selected]') !== null;
}
