import { createHash } from 'node:crypto';
import type { Pool } from 'pg';
import { namedStatement, rethrowUnavailable } from '#platform';
import type { BlobKeeper } from './blob-keeper.ts';
import { BlobMissing, BlobStoreUnavailable } from './blob-store.ts';
import type { FileRow, FileStore } from './file-store.ts';

const PAGE_OF_FILES = namedStatement(import.meta.dirname, 'page-of-files.sql');

const PAGE = 500;
/** The number of files that are checked concurrently. Hashing streams them, with little memory for each. */
const AT_ONCE = 8;
/** After so many unreadable files in a row the storage counts as unavailable, and the check stops. */
const MAX_UNREADABLE = 16;

/** `unreadable`: the storage failed, so it is unknown whether it has the bytes. */
export type FileProblem = 'missing' | 'size' | 'hash' | 'unreadable';

export interface FileFinding {
  fileId: string;
  /** Null for a draft. */
  threadId: string | null;
  problem: FileProblem;
  message: string;
}

export interface VerifyFilesReport {
  files: number;
  bytes: number;
  /** The number of findings; `findings` may have fewer. */
  found: number;
  byProblem: Partial<Record<FileProblem, number>>;
  findings: FileFinding[];
  /** All files up to this one are checked; null before the first page. */
  lastFileId: string | null;
}

export interface VerifyFilesOptions {
  /** Looks only at files after this one. */
  from?: string | undefined;
  /** Whether to read all bytes and compare their SHA-256, not only the size. */
  hash?: boolean | undefined;
  /** The most findings that are listed; all are counted. Default 100. */
  maxFindings?: number | undefined;
  /** Called after every few files with the counts so far. An error that it throws stops the work. */
  onProgress?: ((progress: VerifyFilesReport) => void) | undefined;
}

type Row = Pick<FileRow, 'id' | 'size' | 'sha256' | 'blob_key' | 'lost_at'> & { threadId: string | null };
type Found = Pick<FileFinding, 'problem' | 'message'>;

export interface VerifyFilesParts {
  pool: Pool;
  files: FileStore;
  blobs: BlobKeeper;
}

/**
 * Compares every row of `files` with its bytes in the blob store, page by page, while files change. Notes which files are lost,
 * and which no longer are. Changes nothing else. Throws DatabaseUnavailable, and BlobStoreUnavailable if all files or 16 in a row cannot be
 * read.
 */
export async function verifyFiles(
  parts: VerifyFilesParts,
  options: VerifyFilesOptions = {},
): Promise<VerifyFilesReport> {
  const { from = '', hash = false, maxFindings = 100, onProgress } = options;
  const report: VerifyFilesReport = {
    ...{ files: 0, bytes: 0, found: 0, byProblem: {}, findings: [] },
    lastFileId: from === '' ? null : from,
  };
  let unreadable = 0;
  for (let rows = await readPage(parts.pool, from); rows.length > 0;) {
    for (let i = 0; i < rows.length; i += AT_ONCE) {
      const some = rows.slice(i, i + AT_ONCE);
      const found = await Promise.all(some.map((row) => checkFile(parts, row, hash)));
      for (const [place, row] of some.entries()) {
        report.files++;
        report.bytes += row.size;
        const finding = found[place];
        unreadable = finding?.problem === 'unreadable' ? unreadable + 1 : 0;
        if (finding) collect(report, { fileId: row.id, threadId: row.threadId, ...finding }, maxFindings);
      }
      if (unreadable >= MAX_UNREADABLE) throw new BlobStoreUnavailable(new Error('No file can be read.'));
      report.lastFileId = some.at(-1)!.id;
      onProgress?.(report);
    }
    rows = await readPage(parts.pool, rows.at(-1)!.id);
  }
  if (report.byProblem.unreadable === report.files) throw new BlobStoreUnavailable(new Error('No file can be read.'));
  return report;
}

async function readPage(pool: Pool, after: string): Promise<Row[]> {
  return (await pool.query<Row>({ ...PAGE_OF_FILES, values: [after, PAGE] }).catch(rethrowUnavailable)).rows;
}

function collect(report: VerifyFilesReport, finding: FileFinding, maxFindings: number): void {
  report.found++;
  report.byProblem[finding.problem] = (report.byProblem[finding.problem] ?? 0) + 1;
  if (report.findings.length < maxFindings) report.findings.push(finding);
}

/** Returns null if the bytes are as stored, or if the file was deleted or replaced meanwhile. */
async function checkFile({ files, blobs }: VerifyFilesParts, row: Row, hash: boolean): Promise<Found | null> {
  const found = await compare(blobs, row, hash);
  if (found === null) {
    if (row.lost_at !== null) await files.noteLost(row, false);
    return null;
  }
  // The row may have been deleted with the bytes.
  if ((await files.find(row.id))?.blob_key !== row.blob_key) return null;
  if (found.problem === 'missing') await files.noteLost(row, true);
  return found;
}

async function compare(blobs: BlobKeeper, { size, sha256, blob_key }: Row, hash: boolean): Promise<Found | null> {
  try {
    const stored = await blobs.size(blob_key);
    if (stored !== size) return { problem: 'size', message: `${blob_key} has ${stored} bytes instead of ${size}` };
    if (!hash || size === 0 || (await hashOf(blobs, blob_key)) === sha256) return null;
    return { problem: 'hash', message: `${blob_key} does not match its stored SHA-256` };
  } catch (error) {
    if (error instanceof BlobMissing) return { problem: 'missing', message: `${blob_key} is not in the blob store` };
    if (error instanceof BlobStoreUnavailable) return { problem: 'unreadable', message: `${blob_key} cannot be read` };
    throw error;
  }
}

/** Returns the SHA-256. Throws as BlobStore.get does, and BlobStoreUnavailable if the bytes end early. */
async function hashOf(blobs: BlobKeeper, key: string): Promise<string> {
  const bytes = await blobs.get(key);
  const hash = createHash('sha256');
  try {
    for await (const chunk of bytes as AsyncIterable<Uint8Array>) hash.update(chunk);
  } catch (error) {
    throw new BlobStoreUnavailable(error);
  }
  return hash.digest('hex');
}
