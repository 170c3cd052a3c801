import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { defineConfig } from 'vite';

const CLIENT = join(import.meta.dirname, '../../libs/client');

/** Where `npm run dev:console` finds the service. */
const service = process.env.SPOOL_URL ?? 'http://127.0.0.1:3000';

/** The size from which a file is compressed. A smaller one fits into a packet or two. Bytes. */
const COMPRESSED_FROM_BYTES = 2_000;

/** Writes NAME.br and NAME.gz beside each large script and style, for the API to send. */
const compressed = {
  name: 'compressed',
  apply: 'build',
  enforce: 'post',
  generateBundle: {
    order: 'post',
    handler(_, bundle) {
      for (const { fileName, code, source } of Object.values(bundle)) {
        const bytes = Buffer.from(code ?? source);
        if (!/\.(js|css|svg)$/.test(fileName) || bytes.length < COMPRESSED_FROM_BYTES) continue;
        this.emitFile({ type: 'asset', fileName: `${fileName}.br`, source: brotliCompressSync(bytes) });
        this.emitFile({ type: 'asset', fileName: `${fileName}.gz`, source: gzipSync(bytes) });
      }
    },
  },
};

export default defineConfig({
  root: import.meta.dirname,
  base: '/console/',
  plugins: [compressed],
  resolve: {
    alias: [
      { find: /^#client$/, replacement: join(CLIENT, 'index.ts') },
      { find: /^#client\/react$/, replacement: join(CLIENT, 'react.ts') },
    ],
  },
  build: {
    outDir: '../../dist/apps/console',
    emptyOutDir: true,
    // The policy of the page forbids data: URLs for scripts and styles, and one file more is cheap.
    assetsInlineLimit: 0,
    // From these on, browsers know `light-dark()`. For older ones, it would be replaced by variables that nothing sets.
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    // Directives of frameworks that render on a server, in packages.
    rolldownOptions: { onLog: (level, log, handle) => log.code !== 'MODULE_LEVEL_DIRECTIVE' && handle(level, log) },
    chunkSizeWarningLimit: 1_500,
  },
  server: { proxy: { '/admin': service, '/api': service, '/console/session': service, '/console/queues': service } },
});
