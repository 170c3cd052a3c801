/** The application's server: signs users in, creates their tokens, and serves the page. It never forwards requests to Spool. */
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { Spool } from '@spool/client';
import { build } from 'vite';

if (!process.env.SERVICE_TOKEN) process.loadEnvFile(new URL('../../.data/quickstart.env', import.meta.url));
const { BASE_URL, SERVICE_TOKEN, AGENT_ID, PORT = '8080' } = process.env;
const spool = new Spool({ baseUrl: BASE_URL, token: SERVICE_TOKEN });

/** Replace both with the accounts and sessions of your application. */
const passwords = { ada: 'ada', bob: 'bob' };
const sessions = new Map();

const routes = {
  async 'POST /sign-in'(request, response) {
    const { user, password } = JSON.parse(await text(request));
    if (!Object.hasOwn(passwords, user) || passwords[user] !== password) return response.writeHead(403).end();
    const id = randomUUID();
    sessions.set(id, user);
    response.setHeader('Set-Cookie', `session=${id}; HttpOnly; SameSite=Strict; Path=/`).end();
  },
  async 'POST /spool-token'(request, response) {
    const userId = sessions.get(/session=([^;]+)/.exec(request.headers.cookie ?? '')?.[1]);
    if (userId === undefined) return response.writeHead(401).end();
    const verbs = ['read', 'send', 'decide', 'upload'];
    const { token } = await spool.browserTokens.create({ userId, agentId: AGENT_ID, verbs });
    response.end(JSON.stringify({ token, userId, agentId: AGENT_ID, baseUrl: BASE_URL }));
  },
};

const { output } = await build({ root: import.meta.dirname, logLevel: 'warn', build: { write: false } });
for (const { fileName, source, code } of output) {
  const type = fileName.endsWith('.js') ? 'text/javascript' : 'text/html';
  const path = fileName === 'index.html' ? '/' : `/${fileName}`;
  routes[`GET ${path}`] = async (_, response) => response.setHeader('Content-Type', type).end(source ?? code);
}

createServer((request, response) => {
  const route = routes[`${request.method} ${request.url}`];
  if (!route) return response.writeHead(404).end();
  route(request, response).catch((error) => {
    console.error(error);
    response.writeHead(500).end();
  });
}).listen(Number(PORT), '127.0.0.1', function () {
  console.log(`Open http://127.0.0.1:${this.address().port}, as ada or bob. The password is the name.`);
});
