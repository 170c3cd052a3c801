import { TextBlock } from './text-block.tsx';

/** A value as JSON, in a box that scrolls. `label` names it. */
export function JsonBlock({ value, label, maxHeight }: { value: unknown; label: string; maxHeight?: number }) {
  return <TextBlock text={JSON.stringify(value, null, 2)} label={label} maxHeight={maxHeight} />;
}
