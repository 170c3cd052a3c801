export * from './blob-keeper.ts';
export * from './blob-store.ts';
export * from './disk-blob-store.ts';
export type * from './file-changes.ts';
export * from './file-store.ts';
export * from './files.module.ts';
export * from './open-blob-store.ts';
export * from './store-file.ts';
export * from './verify-files.ts';
