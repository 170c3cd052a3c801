import '@mantine/core/styles.css';
import '@mantine/notifications/styles.css';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { MantineProvider } from '@mantine/core';
import { Notifications } from '@mantine/notifications';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { CallError } from './api/client.ts';
import { App } from './app.tsx';
import { readable, theme } from './theme.ts';

/** The policy of the page lets in only style sheets that carry this answer's number. */
const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? '';
// Where react-remove-scroll, which locks the page behind Mantine's dialogs by a style sheet, looks for it.
Object.assign(globalThis, { __webpack_nonce__: nonce });

/** What a second try may help: nothing answered, or the service failed. What it refuses, it refuses again. */
const mayHelp = (tries: number, error: Error): boolean =>
  tries < 1 && (!(error instanceof CallError) || error.status === 0 || error.status >= 500);

const queries = new QueryClient({
  defaultOptions: {
    // Whether the machine has a network says nothing about a service that may be on the same one.
    queries: { retry: mayHelp, networkMode: 'always', staleTime: 1_000 },
    mutations: { networkMode: 'always' },
  },
});

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <MantineProvider
      theme={theme}
      cssVariablesResolver={readable}
      defaultColorScheme="auto"
      getStyleNonce={() => nonce}
    >
      <QueryClientProvider client={queries}>
        {/* What can be done stands at the top of a page: there they would lie on it, on a phone. */}
        <Notifications position="bottom-right" />
        <App />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
