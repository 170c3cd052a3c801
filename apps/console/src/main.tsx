import '@mantine/core/styles.css';
import '@mantine/notifications/styles.css';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { MantineProvider } from '@mantine/core';
import { Notifications } from '@mantine/notifications';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { CallError } from './api/client.ts';
import { App } from './app.tsx';
import { lazy } from './lazy.tsx';
import { readable, theme } from './theme.ts';

/** The policy of the page allows only style sheets that carry the nonce of this response. */
const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? '';
// Where react-remove-scroll, which locks the page behind Mantine's dialogs by a style sheet, reads it.
Object.assign(globalThis, { __webpack_nonce__: nonce });

/** Whether a second attempt may help: there was no response, or the service failed. */
const mayHelp = (tries: number, error: Error): boolean =>
  tries < 1 && (!(error instanceof CallError) || error.status === 0 || error.status >= 500);

const queries = new QueryClient({
  defaultOptions: {
    // The service may run on the same machine, which needs no network.
    queries: { retry: mayHelp, networkMode: 'always', staleTime: 1_000 },
    mutations: { networkMode: 'always' },
  },
});

/** A page of its own, whose script the console does not load. */
const ChatApp = lazy(() => import('./chat/chat-app.tsx'), { isPage: false });
const isChat = /^\/chat(?:\/|$)/.test(window.location.pathname);

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <MantineProvider
      theme={theme}
      cssVariablesResolver={readable}
      defaultColorScheme="auto"
      getStyleNonce={() => nonce}
    >
      <QueryClientProvider client={queries}>
        {/* They must cover no buttons: those of a page on a phone are at the top, and those of a chat at the bottom. */}
        <Notifications position={isChat ? 'top-center' : 'bottom-right'} />
        {isChat ? <ChatApp /> : <App />}
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
