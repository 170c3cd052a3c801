/**
 * The elements that Spool adds to Bull Board's page: the way back, and the pause. Bull Board's own pause is switched off, because
 * it would bypass the audit log. So are the buttons beside it, because they would lose jobs or run them twice.
 */
export const BOARD_BAR = {
  // First, and not deferred: the board's own scripts send requests.
  head: '<link href="spool.css" rel="stylesheet"><script src="spool-key.js"></script>',
  body: `<aside id="spool" aria-label="Spool">
  <a href="/console/">Console</a>
  <span id="spool-state" role="status"></span>
  <button id="spool-pause" type="button" hidden></button>
</aside>
<script defer src="spool.js"></script>`,
};

const STYLE = `body { padding-bottom: 96px; }
#spool {
  position: fixed; z-index: 50; right: 12px; bottom: 12px; max-width: calc(100vw - 24px);
  display: flex; flex-wrap: wrap; gap: 4px 14px; align-items: center; padding: 8px 14px;
  font: 14px/1.4 system-ui, sans-serif; color: #fff; background: #1f2933; border-radius: 8px; box-shadow: 0 2px 10px #0006;
}
#spool a { color: #a5d8ff; }
#spool button { font: inherit; padding: 4px 12px; color: #fff; background: #1864ab; border: 1px solid #74c0fc; border-radius: 4px; cursor: pointer; }
`;

/** Adds the page key (apps/console/src/api/page-key.ts) to the board's requests. Its policy allows requests to this origin only. */
const KEY_SCRIPT = `const spoolKey = { 'Spool-Page-Key': localStorage.getItem('spool-page-key') ?? '' };
const { open } = XMLHttpRequest.prototype;
XMLHttpRequest.prototype.open = function (...args) {
  open.apply(this, args);
  for (const [name, value] of Object.entries(spoolKey)) this.setRequestHeader(name, value);
};
`;

const SCRIPT = `const state = document.getElementById('spool-state');
const button = document.getElementById('spool-pause');
let paused = false;

async function ask(method, path) {
  try {
    const response = await fetch('/admin/v1/queue' + path, { method, headers: spoolKey });
    if (response.status === 401) {
      location.assign('/console/login?next=' + encodeURIComponent((location.pathname + location.search).slice('/console'.length)));
      return;
    }
    const { queue, error } = await response.json();
    if (error) throw new Error(error.message);
    paused = queue.pausedAt !== null;
    state.textContent = paused ? 'Paused: queued Runs wait' : 'Active: workers take Runs';
    button.textContent = paused ? 'Resume' : 'Pause';
    button.hidden = false;
  } catch (error) {
    state.textContent = 'Queue status unavailable: ' + error.message;
  }
}

button.addEventListener('click', () => {
  if (paused) void ask('POST', '/resume');
  else if (confirm('Pause the queue? Queued Runs stay queued; active Runs continue.')) void ask('POST', '/pause');
});

void ask('GET', '');
setInterval(() => document.hidden || ask('GET', ''), 5000);
`;

/** By name, below the board's path. */
export const BOARD_FILES = new Map([
  ['spool.css', { type: 'text/css; charset=utf-8', text: STYLE }],
  ['spool-key.js', { type: 'text/javascript; charset=utf-8', text: KEY_SCRIPT }],
  ['spool.js', { type: 'text/javascript; charset=utf-8', text: SCRIPT }],
]);
