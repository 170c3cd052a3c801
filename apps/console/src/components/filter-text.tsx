import { useState, type KeyboardEvent } from 'react';
import { Autocomplete, TextInput, type TextInputProps } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';

interface Props extends Pick<TextInputProps, 'label' | 'placeholder' | 'leftSection' | 'w'> {
  value: string;
  /** Called when typing rests, or with Enter. */
  onChange: (value: string) => void;
  /** What may be meant. */
  suggestions?: string[];
}

const REST_MS = 300;

/** A text that is looked for: not at each letter of it. */
export function FilterText({ value, onChange, suggestions, ...props }: Props) {
  const { typed, type, flush } = useLateText(value, onChange);
  const onKeyDown = (event: KeyboardEvent) => event.key === 'Enter' && flush();
  if (suggestions) {
    return <Autocomplete {...{ ...props, onKeyDown }} data={suggestions} value={typed} onChange={type} />;
  }
  return <TextInput {...{ ...props, onKeyDown }} value={typed} onChange={(event) => type(event.currentTarget.value)} />;
}

/** What is typed, and `value` as soon as that is changed otherwise, such as by going back. */
function useLateText(value: string, onChange: (value: string) => void) {
  const [typed, setTyped] = useState(value);
  const [applied, setApplied] = useState(value);
  const apply = useDebouncedCallback((next: string) => {
    setApplied(next);
    onChange(next);
  }, REST_MS);
  if (applied !== value) {
    setApplied(value);
    setTyped(value);
  }
  const type = (text: string) => {
    setTyped(text);
    apply(text.trim());
  };
  return { typed, type, flush: apply.flush };
}
