// Writes the picture of the chat at the beginning of README.md: `node scripts/write-chat-picture.mjs`, after `npm run build`.
import { execFileSync, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';

const PICTURE = join(import.meta.dirname, '../docs/operations/screenshots/chat-approval-wide-light.png');
const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'];

const folder = await mkdtemp(join(tmpdir(), 'spool-picture-'));
const env = { ...process.env, DATA_DIR: folder, PORT: process.env.PORT ?? '3111' };
const service = spawn(process.execPath, [join(import.meta.dirname, '../dist/apps/standalone/main.js')], { env });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: FLAGS });
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await page.goto(await chatLink());
  const say = async (text) => {
    await page.getByRole('button', { name: 'Send', exact: true }).waitFor();
    await page.getByRole('textbox', { name: 'Message' }).fill(text);
    await page.keyboard.press('Enter');
  };
  await say('What happens after a crash?');
  await page.getByText('Clients remove it, and get the repeated step.').last().waitFor();
  await say('Show me a tool that needs approval');
  await page.getByRole('button', { name: 'Allow write_page' }).waitFor();
  await page.getByRole('link', { name: /Needs approval/ }).waitFor();
  await page.screenshot({ path: PICTURE });
} finally {
  await browser.close();
  service.kill();
  await new Promise((resolve) => service.once('exit', resolve));
  await rm(folder, { recursive: true });
}
execFileSync('pngquant', ['--force', '--ext', '.png', '--strip', PICTURE]);

/** Returns the link that `npm start` prints. */
async function chatLink() {
  for await (const line of createInterface(service.stdout)) {
    const [, link] = /^Chat: (\S+)$/.exec(line) ?? [];
    if (link !== undefined) return link;
  }
  throw new Error('The service printed no link to the chat.');
}
