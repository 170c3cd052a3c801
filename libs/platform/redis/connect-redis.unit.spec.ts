import type { RedisOptions } from 'ioredis';
import { connectRedis } from './connect-redis.ts';

test.each([
  [true, "READONLY You can't write against a read only replica."],
  [true, 'NOREPLICAS Not enough good replicas to write.'],
  // A script, on Redis 7 and on Redis 6.
  [true, "READONLY You can't write against a read only replica. script: 5f0c, on @user_script:1."],
  [
    true,
    "ERR Error running script (call to f_5f0c): @user_script:1: -READONLY You can't write against a read only replica. ",
  ],
  [true, 'ERR Error running script (call to f_5f0c): @user_script:1: -NOREPLICAS Not enough good replicas to write. '],
  [false, 'ERR unknown command `readonly`, with args beginning with: '],
  [false, 'TRYAGAIN Multiple keys request during rehashing of slot'],
])('reconnects: %s, after the error "%s"', (reconnects, message) => {
  const client = connectRedis('redis://localhost', { lazyConnect: true });
  const { reconnectOnError } = client.options as RedisOptions;
  expect(reconnectOnError!(new Error(message))).toBe(reconnects);
});
