import { useState, type FormEvent } from 'react';
import { Alert, Button, Center, Code, Paper, PasswordInput, Stack, Text, Title } from '@mantine/core';
import { useDocumentTitle } from '@mantine/hooks';
import type { CallError } from '../api/client.ts';
import { useSigning } from '../api/use-session.ts';
import { useClock } from '../components/clock.ts';

/** The form to sign in with an operator token. After that, the requested page is shown. */
export function Login() {
  useDocumentTitle('Sign in · Spool');
  const { token, setToken, submit, isBusy, error, waitSeconds } = useLogin();
  return (
    <Center component="main" mih="100dvh" p="md">
      <Paper component="form" onSubmit={submit} withBorder p="xl" w="100%" maw={420} shadow="xs">
        <Stack>
          <Title order={1} size="h2">
            Sign in to Spool
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
            {/* Not in the alert, because screen readers would read it each second. */}
            {waitSeconds > 0 ? `Try again in ${waitSeconds} s` : 'Sign in'}
          </Button>
          <Text size="xs" c="dimmed">
            For operators. After <Code>npm start</Code>, use <Code>OPERATOR_TOKEN</Code> from{' '}
            <Code>quickstart.env</Code> in the data directory (default: <Code>.data</Code>). To create another token,
            use <Code>spool token create --operator</Code>. The browser keeps only a session, which ends after an hour
            of inactivity.
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
  return { token, setToken, submit, isBusy, waitSeconds, error: failure ? describe(failure.error) : null };
}

function describe(error: CallError): string {
  if (error.status === 401) return 'Not an operator token, or it is expired or revoked.';
  return error.status === 429 ? 'Too many attempts.' : error.message;
}
