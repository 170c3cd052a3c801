import { useEffect, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { Spool } from '@spool/client';
import { SpoolProvider, useSpool, useThread } from '@spool/client/react';

async function post(path, body) {
  const response = await fetch(path, { method: 'POST', body: JSON.stringify(body) });
  if (response.ok) return response;
  throw Object.assign(new Error(`${path} returned ${response.status}.`), { status: response.status });
}

const getToken = async () => (await post('/spool-token')).json();

/** Returns the client and the only Thread of the signed-in user. */
async function open() {
  const { userId, agentId, baseUrl } = await getToken();
  const client = new Spool({ baseUrl, getToken });
  const thread = await client.agent(agentId).thread({ userId, externalRef: 'chat' });
  return { client, threadId: thread.id };
}

function Part({ part: { type, text, toolName, state, fileId, name } }) {
  const { files } = useSpool();
  const download = async () => location.assign((await files.link(fileId)).url);
  if (type === 'file') return <button onClick={download} children={name} />;
  return <p>{type === 'tool_call' ? `${toolName}: ${state}` : text}</p>;
}

function Chat({ threadId, onSignedOut }) {
  const { messages, questions, error, isActive, isSending, hasEarlier, ...thread } = useThread(threadId);
  const [failure, setFailure] = useState(null);
  const [sent, setSent] = useState({});
  const act = (action) => action.then(() => setFailure(null), setFailure);
  useEffect(() => void (error?.status === 401 && onSignedOut()), [error]);

  function submit(event) {
    event.preventDefault();
    const { target: form } = event;
    act(thread.send(form.text.value, { files: [...form.file.files], onProgress: setSent }).then(() => form.reset()));
  }

  return (
    <main>
      {hasEarlier && <button onClick={() => act(thread.loadEarlier())}>Earlier messages</button>}
      <ol>
        {messages.map(({ id, role, parts, status }) => (
          <li key={id} aria-label={role}>
            {parts.map((part, i) => (
              <Part key={i} part={part} />
            ))}
            {status}
          </li>
        ))}
      </ol>
      {questions.map(({ requestId, toolName, toolInput }) => (
        <p key={requestId}>
          Allow {toolName} {JSON.stringify(toolInput)}?
          <button onClick={() => act(thread.decide(requestId, 'allow_once'))}>Allow</button>
          <button onClick={() => act(thread.decide(requestId, 'reject_once'))}>Reject</button>
        </p>
      ))}
      <p role="alert">{(error ?? failure)?.message}</p>
      <form onSubmit={submit}>
        <input name="text" aria-label="Message" required />
        <input name="file" aria-label="Files" type="file" multiple />
        {isSending && <progress value={sent.sentBytes} max={sent.totalBytes} />}
        <button disabled={isActive || isSending}>Send</button>
        <button type="button" disabled={!isActive} onClick={() => act(thread.interrupt())} children="Stop" />
      </form>
    </main>
  );
}

function SignIn({ error, onDone }) {
  const [failure, setFailure] = useState(error);
  const submit = (data) => post('/sign-in', Object.fromEntries(data)).then(onDone).catch(setFailure);
  return (
    <form action={submit}>
      <input name="user" aria-label="Name" /> <input name="password" aria-label="Password" type="password" />
      <button>Sign in</button>
      <p role="alert">{failure?.status === 403 ? 'The name or the password is wrong.' : failure?.message}</p>
    </form>
  );
}

function Application({ first }) {
  const [{ client, threadId, error }, setOpened] = useState(first);
  if (!client) return <SignIn error={error} onDone={async () => setOpened(await open())} />;
  return <SpoolProvider client={client} children={<Chat threadId={threadId} onSignedOut={() => setOpened({})} />} />;
}

const first = await open().catch((error) => (error.status === 401 ? {} : { error }));
createRoot(document.getElementById('root')).render(<Application first={first} />);
