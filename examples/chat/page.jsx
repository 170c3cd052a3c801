import { useState } from 'react';
import { createRoot } from 'react-dom/client';
import { Spool } from '@spool/client';
import { SpoolProvider, useSpool, useThread } from '@spool/client/react';

async function post(path, body) {
  const response = await fetch(path, { method: 'POST', body: JSON.stringify(body) });
  if (!response.ok) throw Object.assign(new Error(`${path} returned ${response.status}.`), { status: response.status });
  return response;
}

const getToken = async () => (await post('/spool-token')).json();

/** Returns the client and the only Thread of the signed-in customer. */
async function open() {
  const { userId, agentId, baseUrl } = await getToken();
  const client = new Spool({ baseUrl, getToken });
  const thread = await client.agent(agentId).thread({ userId, externalRef: 'chat' });
  return { client, threadId: thread.id };
}

function Part({ part: { type, text, toolName, state, fileId, name } }) {
  const { files } = useSpool();
  const download = async () => location.assign((await files.link(fileId)).url);
  if (type === 'file') return <button onClick={download}>{name}</button>;
  return <p>{type === 'tool_call' ? `${toolName}: ${state}` : text}</p>;
}

function Chat({ threadId }) {
  const { messages, run, questions, error, send, decide, interrupt, hasEarlier, loadEarlier } = useThread(threadId);
  const [failure, setFailure] = useState(null);
  const isActive = ['queued', 'running', 'waiting_input'].includes(run?.status);

  async function submit(event) {
    event.preventDefault();
    const form = event.target;
    await send(form.text.value, { files: [...form.file.files] }).then(() => form.reset(), setFailure);
  }

  // If another tab was faster, the view shows what it decided.
  const answer = (requestId, decision) =>
    decide(requestId, decision).catch((late) => late.reason === 'request_decided' || Promise.reject(late));

  return (
    <main>
      {hasEarlier && <button onClick={loadEarlier}>Earlier messages</button>}
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
          <button onClick={() => answer(requestId, 'allow_once')}>Allow</button>
          <button onClick={() => answer(requestId, 'reject_once')}>Reject</button>
        </p>
      ))}
      <p role="alert">{(error ?? failure)?.message}</p>
      <form onSubmit={submit}>
        <input name="text" aria-label="Message" required />
        <input name="file" aria-label="Files" type="file" multiple />
        <button disabled={isActive}>Send</button>
        <button type="button" disabled={!isActive} onClick={interrupt} children="Stop" />
      </form>
    </main>
  );
}

function SignIn({ onDone }) {
  const [isWrong, setWrong] = useState(false);
  const submit = (data) => post('/sign-in', Object.fromEntries(data)).then(onDone, () => setWrong(true));
  return (
    <form action={submit}>
      <input name="user" aria-label="Name" /> <input name="password" aria-label="Password" type="password" />
      <button>Sign in</button> {isWrong && <p role="alert">The name or the password is wrong.</p>}
    </form>
  );
}

function Application({ first }) {
  const [opened, setOpened] = useState(first);
  if (opened === null) return <SignIn onDone={async () => setOpened(await open())} />;
  return <SpoolProvider client={opened.client} children={<Chat threadId={opened.threadId} />} />;
}

const first = await open().catch((error) => (error.status === 401 ? null : Promise.reject(error)));
createRoot(document.getElementById('root')).render(<Application first={first} />);
