import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { PendingAttachment } from '@assistant-ui/react';
import { Spool } from '#client';
import { DraftAttachments } from './attachments.ts';

test('rejects a message whose file was not uploaded', async () => {
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(413, { 'content-type': 'application/json' }).end(TOO_LARGE));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const attachments = new DraftAttachments(new Spool({ baseUrl: `http://127.0.0.1:${port}/api/v1`, token: 't' }), 'a');
  let shown: PendingAttachment | undefined;
  const upload = async (): Promise<void> => {
    for await (shown of attachments.add({ file: new File(['x'], 'x.txt') }));
  };
  await expect(upload()).rejects.toThrow('It is too large.');
  await expect(attachments.send(shown!)).rejects.toThrow('x.txt was not uploaded.');
  expect(attachments.draftsOf([shown!])).toEqual([]);
  server.close();
});

const TOO_LARGE = JSON.stringify({ error: { code: 'too_large', message: 'It is too large.' } });
