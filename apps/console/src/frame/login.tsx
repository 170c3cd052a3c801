import { useState, type FormEvent } from 'react';
import { Alert, Button, Center, Code, Paper, PasswordInput, Stack, Text, Title } from '@mantine/core';
import { useDocumentTitle } from '@mantine/hooks';
import type { CallError } from '../api/client.ts';
import { useSigning } from '../api/use-session.ts';
import { useClock } from '../parts/clock.ts';

/** Signing in with an operator token; whoever is in is shown the page they came from. */
export function Login() {
  useDocumentTitle('Sign in · Spool');
  const { token, setToken, submit, isBusy, error, waitSeconds } = useLogin();
  return (
    <Center component="main" mih="100dvh" p="md">
      <Paper component="form" onSubmit={submit} withBorder p="xl" w="100%" maw={420} shadow="xs">
        <Stack>
          <Title order={1} size="h2">
            Spool console
          </Title>
          <PasswordInput
            size="sm"
            label="Operator token"
            value={token}
            onChange={(event) => setToken(event.currentTarget.value)}
            autoComplete="current-password"
            required
            withAsterisk={false}
            autoFocus
          />
          {error !== null && (
            <Alert role="alert" color="red" p="xs">
              {error}
            </Alert>
          )}
          <Button size="sm" type="submit" loading={isBusy} disabled={waitSeconds > 0}>
            {/* Not in the alert: that would be read out each second. */}
            {waitSeconds > 0 ? `Try again in ${waitSeconds} s` : 'Sign in'}
          </Button>
          <Text size="xs" c="dimmed">
            After <Code>npm start</Code> it is the <Code>OPERATOR_TOKEN</Code> in <Code>.data/quickstart.env</Code>.
            Another one is made with <Code>spool token create</Code>. The token stays in this form: the browser keeps
            only a session, which ends after an hour without use.
          </Text>
        </Stack>
      </Paper>
    </Center>
  );
}

function useLogin() {
  const { signIn } = useSigning();
  const [token, setToken] = useState('');
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<{ error: CallError; until: number }>();
  const until = failure?.error.retryAfter ? failure.until : 0;
  const waitSeconds = useClock((now) => Math.max(0, Math.ceil((until - now) / 1_000)));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setFailure(undefined);
    signIn(token.trim())
      .catch((error: CallError) => setFailure({ error, until: Date.now() + (error.retryAfter ?? 0) * 1_000 }))
      .finally(() => setBusy(false));
  };
  return { token, setToken, submit, isBusy, waitSeconds, error: failure ? tell(failure.error) : null };
}

function tell(error: CallError): string {
  if (error.status === 401) return 'This is not the token of an operator, or it has ended.';
  return error.status === 429 ? 'Too many tries.' : error.message;
}
