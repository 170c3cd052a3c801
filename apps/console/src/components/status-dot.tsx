import { ColorSwatch } from '@mantine/core';

/** The colour of a state beside its name; tells nothing by itself. */
export function StatusDot({ color }: { color: string }) {
  return (
    <ColorSwatch
      component="span"
      size={8}
      color={`var(--mantine-color-${color}-6)`}
      withShadow={false}
      display="inline-block"
      aria-hidden
    />
  );
}
