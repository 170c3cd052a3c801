import { createTheme, DEFAULT_THEME, type CSSVariablesResolver, type MantineColorsTuple } from '@mantine/core';

/** Mantine's colours, with a last shade dark enough for text on white and on its own tint (WCAG AA, 4.5 to 1). */
const withDarkEnd = (name: string, end: string): MantineColorsTuple =>
  DEFAULT_THEME.colors[name]!.with(9, end) as unknown as MantineColorsTuple;

export const theme = createTheme({
  primaryColor: 'indigo',
  primaryShade: 9,
  colors: { teal: withDarkEnd('teal', '#066649'), orange: withDarkEnd('orange', '#9c3a06') },
  defaultRadius: 'sm',
  // Who asks the system for less motion gets none.
  respectReducedMotion: true,
  fontSizes: { xs: '0.75rem', sm: '0.8125rem', md: '0.875rem', lg: '1rem', xl: '1.125rem' },
  headings: {
    fontWeight: '600',
    sizes: { h1: { fontSize: '1.375rem' }, h2: { fontSize: '1rem' }, h3: { fontSize: '0.875rem' } },
  },
  components: {
    Table: {
      defaultProps: {
        ...{ verticalSpacing: 6, horizontalSpacing: 'xs', fz: 'sm' },
        // On the default colour, links are too pale in the dark.
        highlightOnHoverColor: 'light-dark(var(--mantine-color-gray-1), var(--mantine-color-dark-6))',
      },
    },
    Button: { defaultProps: { size: 'xs' } },
    // A box that scrolls is reached by the keyboard, whatever stands in it.
    TableScrollContainer: { defaultProps: { scrollAreaProps: { viewportProps: { tabIndex: 0 } } } },
    Modal: {
      defaultProps: {
        centered: true,
        closeButtonProps: { 'aria-label': 'Close' },
        // Its element `header` would be a second banner of the page.
        attributes: { header: { role: 'presentation' } },
      },
    },
    TextInput: { defaultProps: { size: 'xs' } },
    Select: { defaultProps: { size: 'xs' } },
    Autocomplete: { defaultProps: { size: 'xs' } },
    Tooltip: { defaultProps: { withArrow: true, openDelay: 300 } },
    // Its words beside a title are as pale as all of Mantine's quiet text, by a colour of their own.
    Notification: {
      defaultProps: { closeButtonProps: { 'aria-label': 'Close' } },
      styles: { description: { color: 'inherit' } },
    },
    ActionIcon: { defaultProps: { variant: 'subtle', color: 'gray' } },
  },
});

/** Quiet text that can still be read (WCAG AA): Mantine's own is too pale in both schemes. */
export const readable: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    '--mantine-color-dimmed': 'var(--mantine-color-gray-7)',
    '--mantine-color-placeholder': 'var(--mantine-color-gray-7)',
    '--mantine-color-error': 'var(--mantine-color-red-9)',
  },
  dark: {
    '--mantine-color-dimmed': '#a6a7ab',
    '--mantine-color-placeholder': '#a6a7ab',
    '--mantine-color-error': 'var(--mantine-color-red-4)',
  },
});
