// Preloaded into a process under test (NODE_OPTIONS=--import …): its Date is off by as many milliseconds as the file named in
// CLOCK_OFFSET_FILE says, looked up every few milliseconds. Monotonic clocks (performance.now, timers) are as they are, as
// when a machine's clock is set.
import { readFileSync } from 'node:fs';

const file = process.env.CLOCK_OFFSET_FILE;
const RealDate = globalThis.Date;
const LOOK_MS = 5;
let offsetMs = 0;

function look() {
  offsetMs = Number(readFileSync(file, 'utf8'));
}
look();
setInterval(look, LOOK_MS).unref();

globalThis.Date = class Date extends RealDate {
  constructor(...args) {
    if (args.length === 0) super(Date.now());
    else super(...args);
  }

  /** Those that Node itself makes are dates too. */
  static [Symbol.hasInstance](value) {
    return value instanceof RealDate;
  }

  static now() {
    return RealDate.now() + offsetMs;
  }
};
