export * from './blob-store.ts';
export * from './disk-blob-store.ts';
export * from './files.module.ts';
export * from './save-artifact.ts';
