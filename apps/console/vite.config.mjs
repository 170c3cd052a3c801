import { defineConfig } from 'vite';

/** Where `npm run dev:console` finds the service. */
const service = process.env.SPOOL_URL ?? 'http://127.0.0.1:3000';

export default defineConfig({
  root: import.meta.dirname,
  base: '/console/',
  build: {
    outDir: '../../dist/apps/console',
    emptyOutDir: true,
    // The policy of the page forbids data: URLs for scripts and styles, and one file more is cheap.
    assetsInlineLimit: 0,
    // Directives of frameworks that render on a server, in packages.
    rolldownOptions: { onLog: (level, log, handle) => log.code !== 'MODULE_LEVEL_DIRECTIVE' && handle(level, log) },
    chunkSizeWarningLimit: 1_500,
  },
  server: { proxy: { '/admin': service, '/console/session': service, '/console/queues': service } },
});
