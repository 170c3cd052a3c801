import { newId } from '#platform';
import { createTestDatabase } from '#testing';
import { CommandError } from './exit-codes.ts';
import { openLocalClient } from './local-client.ts';

it('refuses to create a chat token, because there is no operator token that it could end with', async () => {
  const database = await createTestDatabase();
  const client = await openLocalClient(database.url);
  try {
    await expect(client.call('createChatToken', { body: { agentId: newId() } })).rejects.toEqual(
      new CommandError('usage', 'A chat token needs an operator token or a session; run the command without --local.'),
    );
  } finally {
    await client.close();
    await database.drop();
  }
});
