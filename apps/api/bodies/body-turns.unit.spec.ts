import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { BodyTurns } from './body-turns.ts';

const MIB = 1024 * 1024;

/** The parts of Node's response that turns need. */
function makeResponse() {
  const socket = Object.assign(new EventEmitter(), { destroyed: false });
  const response = { req: { socket }, end: jest.fn() };
  return { socket, response: response as unknown as ServerResponse };
}

const settled = () => new Promise(setImmediate);

describe('the turn of a large body', () => {
  const take = (turns: BodyTurns, owner: string, bytes: number, { response } = makeResponse()) => {
    const taken = { now: false, response, turn: turns.take(owner, bytes, response) };
    taken.turn.then(
      () => (taken.now = true),
      () => undefined,
    );
    return taken;
  };

  it('comes when the earlier request is answered, not when its client disconnects', async () => {
    const turns = new BodyTurns(50, 64 * MIB);
    const before = makeResponse();
    const first = take(turns, 'a', 8 * MIB, before);
    const [second, other] = [take(turns, 'a', 8 * MIB), take(turns, 'b', 8 * MIB)];
    before.socket.emit('close');
    await settled();
    expect([first.now, second.now, other.now]).toEqual([true, false, false]);
    first.response.end();
    await settled();
    expect([second.now, other.now].filter(Boolean)).toHaveLength(1);
    expect(before.socket.eventNames()).toEqual([]);
  });

  it('is refused to a client that has disconnected', async () => {
    const turns = new BodyTurns(50, 64 * MIB);
    const first = take(turns, 'a', 8 * MIB);
    const gone = makeResponse();
    const waiting = take(turns, 'a', 8 * MIB, gone);
    gone.socket.emit('close');
    await expect(waiting.turn).rejects.toMatchObject({ reason: 'too_many_body_bytes' });
    gone.socket.destroyed = true;
    await expect(turns.take('a', 8 * MIB, gone.response)).rejects.toMatchObject({ reason: 'invalid_http' });
    first.response.end();
    await turns.take('a', 8 * MIB, makeResponse().response);
  });

  it('comes immediately for a small body', async () => {
    const turns = new BodyTurns(50, 64 * MIB);
    await turns.take('a', 8 * MIB, makeResponse().response);
    await turns.take('b', 256 * 1024, makeResponse().response);
  });
});
