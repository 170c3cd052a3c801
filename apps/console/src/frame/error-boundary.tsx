import { Component, type ErrorInfo, type ReactNode } from 'react';
import { Alert, Button, Code, Group, Text } from '@mantine/core';

interface State {
  error: Error | null;
}

/** Keeps the frame if a page crashes or its script cannot be loaded. The script is usually of an earlier release, which is gone. */
export class ErrorBoundary extends Component<{ children: ReactNode }, State> {
  override state: State = { error: null };

  static getDerivedStateFromError(error: Error): State {
    return { error };
  }

  override componentDidCatch(error: Error, { componentStack }: ErrorInfo): void {
    reportError(new Error(`A page crashed.${componentStack ?? ''}`, { cause: error }));
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <Alert role="alert" color="red" title="This page crashed">
        <Text size="sm" mb="sm">
          Nothing was changed. Reload the page. If that does not help, use the message below to find the cause.
        </Text>
        <Code block>{error.message}</Code>
        <Group mt="sm">
          <Button onClick={() => location.reload()}>Reload</Button>
        </Group>
      </Alert>
    );
  }
}
