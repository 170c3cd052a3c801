import { Agent, request, type IncomingMessage, type RequestOptions } from 'node:http';
import type { Socket } from 'node:net';

const ANSWER_MS = 60_000;
const CONNECTIONS = 64;
/** By local address. */
const agents = new Map<string, Agent>();

function agentOf(localAddress: string): Agent {
  const agent = agents.get(localAddress) ?? new Agent({ keepAlive: true, localAddress, maxSockets: CONNECTIONS });
  agents.set(localAddress, agent);
  return agent;
}

export interface Answered {
  /** Null if the connection ended without an answer. */
  status: number | null;
  text: string;
  /** As in the call. */
  who?: string | undefined;
}

export interface Call {
  /** Names the kind of request in the report, where several belong to one attack. */
  who?: string | undefined;
  url: string;
  /** The local address that it comes from. Requests without a known token are limited by address. */
  from: string;
  method?: string;
  headers?: Record<string, string>;
  body?: string | Buffer;
}

/** Sends one request on a shared connection. Never rejects. */
export function call({ who, url, from, method = 'GET', headers = {}, body }: Call): Promise<Answered> {
  return new Promise((resolve) => {
    const fail = (): void => resolve({ status: null, text: '' });
    const sending = open(
      url,
      { method, agent: agentOf(from), headers: { 'content-type': 'application/json', ...headers } },
      (answer) => {
        let text = '';
        answer.setEncoding('utf8').on('data', (piece: string) => (text += piece));
        answer.on('end', () => resolve({ who, status: answer.statusCode ?? null, text })).on('error', fail);
      },
    );
    sending.on('error', fail).setTimeout(ANSWER_MS, () => sending.destroy());
    sending.end(body);
  });
}

export interface Stall {
  url: string;
  from: string;
  token: string;
  body: Buffer;
  forMs: number;
}

/** Announces a body and sends all of it but the last byte. Resolves with the status, or with null when the connection ends. */
export function stallBody({ url, from, token, body, forMs }: Stall): Promise<Answered> {
  return new Promise((resolve) => {
    const headers = {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      'content-length': body.length,
    };
    const sending = open(url, { method: 'POST', agent: false, localAddress: from, headers }, (answer) => {
      resolve({ status: answer.statusCode ?? null, text: '' });
      sending.destroy();
    });
    sending.on('error', () => resolve({ status: null, text: '' }));
    sending.write(body.subarray(0, -1));
    setTimeout(() => sending.destroy(new Error('the attack is over')), forMs);
  });
}

const guarded = new WeakSet<Socket>();

/** A server that has answered hangs up on a body that is still being sent. No request hears of that. */
function open(url: string, options: RequestOptions, onAnswer: (answer: IncomingMessage) => void) {
  return request(url, options, onAnswer).once('socket', (socket) => {
    if (!guarded.has(socket)) socket.on('error', () => undefined);
    guarded.add(socket);
  });
}
