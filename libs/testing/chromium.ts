import { spawnSync } from 'node:child_process';
import type { Browser } from 'playwright-core';
import { trackRunning } from './running.ts';

/** Debian's; playwright-core brings no browser of its own. */
const program = (): string => process.env['CHROMIUM'] || '/usr/bin/chromium';

/** It talks to nobody but us, and needs no screen. Root may not use its sandbox. */
const FLAGS = [
  ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
];

let isInstalled: boolean | undefined;

export function isChromiumInstalled(): boolean {
  return (isInstalled ??= spawnSync(program(), ['--version']).status === 0);
}

/** `describe`, skipped where there is no Chromium; the end of the run then says so (run-services.ts). */
export function describeInBrowser(name: string, suite: () => void): void {
  (isChromiumInstalled() ? describe : describe.skip)(name, suite);
}

/** A browser without windows; whoever starts it closes it. It ends with this process, whatever becomes of it. */
export async function startChromium(): Promise<Browser> {
  // Imported only here, because it takes 0.4 s to load and every spec file loads this module.
  const { chromium } = await import('playwright-core');
  const browser = await chromium.launch({ executablePath: program(), args: FLAGS });
  browser.on('disconnected', trackRunning({ what: 'chromium', end: () => void browser.close() }));
  return browser;
}
