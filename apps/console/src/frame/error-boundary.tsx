import { Component, type ErrorInfo, type ReactNode } from 'react';
import { Alert, Button, Code, Group, Text } from '@mantine/core';

interface State {
  error: Error | null;
}

/** Keeps the frame when a page breaks, or its script cannot be loaded: that of a release that is gone, most likely. */
export class ErrorBoundary extends Component<{ children: ReactNode }, State> {
  override state: State = { error: null };

  static getDerivedStateFromError(error: Error): State {
    return { error };
  }

  override componentDidCatch(error: Error, { componentStack }: ErrorInfo): void {
    reportError(new Error(`A page broke.${componentStack ?? ''}`, { cause: error }));
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <Alert role="alert" color="red" title="This page broke">
        <Text size="sm" mb="sm">
          Nothing has been changed by that. Load it again; if that does not help, the message below says where to look.
        </Text>
        <Code block>{error.message}</Code>
        <Group mt="sm">
          <Button onClick={() => location.reload()}>Load again</Button>
        </Group>
      </Alert>
    );
  }
}
