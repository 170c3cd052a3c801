import { useState, type ReactNode } from 'react';
import { Button, Group, Stack, Table, Text } from '@mantine/core';
import type { AgentVersionRecord, ManagedAgent } from '#contract';
import { get, post } from '../api/client.ts';
import { useOperation } from '../api/use-operation.ts';
import { usePagesBy } from '../api/use-pages.ts';
import { useAction } from '../components/action.ts';
import { ActionButton } from '../components/action-button.tsx';
import { Ago } from '../components/ago.tsx';
import { LoadMore } from '../components/load-more.tsx';
import { QueryState } from '../components/query-state.tsx';
import { RecordRow, RecordTable } from '../components/record-table.tsx';
import { Section } from '../components/section.tsx';
import { StatusBadge } from '../components/status-badge.tsx';
import { ManifestDiff, ManifestView } from './manifest-view.tsx';
import type { Manifest } from './manifest-text.ts';

const PATH = '/agents/{agentId}/versions';
const PAGE = 20;

/** All versions of an Agent, newest first: what each said, how the live one differs, and the way back to it. */
export function Versions({ agent, live }: { agent: ManagedAgent; live: Manifest | null }) {
  const versions = useVersions(agent.id);
  return (
    <Section title="Versions">
      <QueryState query={versions.query} isEmpty={(items) => items.length === 0} empty="No versions yet.">
        {(items) => (
          <RecordTable
            aria-label={`Versions of ${agent.name}`}
            minWidth={420}
            columns={['Version', 'Created', { name: 'Actions', ta: 'right' }]}
          >
            {items.map((row) => (
              <VersionRows key={row.version} agent={agent} live={live} row={row} />
            ))}
          </RecordTable>
        )}
      </QueryState>
      <LoadMore pages={versions} />
    </Section>
  );
}

function useVersions(agentId: string) {
  const params = { agentId };
  return usePagesBy({
    key: [PATH, { params }, 'pages'],
    read: (before: number | null, signal) =>
      get(PATH, { params, query: { limit: PAGE, ...(before === null ? {} : { before }) } }, signal),
    next: ({ versions }) => (versions.length < PAGE ? null : versions.at(-1)!.version),
    itemsOf: ({ versions }) => versions,
  });
}

type Shown = 'manifest' | 'difference' | null;

interface RowProps {
  agent: ManagedAgent;
  live: Manifest | null;
  row: AgentVersionRecord;
}

function VersionRows({ agent, live, row }: RowProps) {
  const [shown, setShown] = useState<Shown>(null);
  const { version } = row;
  return (
    <>
      <RecordRow>
        <Table.Td>
          <Group gap="xs">
            {version}
            {row.live && <StatusBadge color="teal">Live</StatusBadge>}
          </Group>
        </Table.Td>
        <Table.Td>
          <Ago time={row.createdAt} />
        </Table.Td>
        <Table.Td>
          <Group gap="xs" justify="flex-end">
            <Toggle
              label="Manifest"
              name={`Show the manifest of version ${version}`}
              is="manifest"
              {...{ shown, setShown }}
            />
            {!row.live && (
              <Toggle
                label="Compare"
                name={`Compare version ${version} with the live one`}
                is="difference"
                {...{ shown, setShown }}
              />
            )}
            {!row.live && agent.deletedAt === null && <RollBack agent={agent} version={version} live={live} />}
          </Group>
        </Table.Td>
      </RecordRow>
      {shown !== null && (
        <RecordRow>
          <Table.Td colSpan={3}>
            <Version agentId={agent.id} version={version}>
              {(manifest) =>
                shown === 'manifest' || live === null ? (
                  <ManifestView manifest={manifest} of={`The manifest of version ${version}`} />
                ) : (
                  <ManifestDiff before={manifest} after={live} of={`From version ${version} to the live one`} />
                )
              }
            </Version>
          </Table.Td>
        </RecordRow>
      )}
    </>
  );
}

interface ToggleProps {
  label: string;
  name: string;
  is: Shown;
  shown: Shown;
  setShown: (shown: Shown) => void;
}

function Toggle({ label, name, is, shown, setShown }: ToggleProps) {
  const isShown = shown === is;
  return (
    <Button variant="default" onClick={() => setShown(isShown ? null : is)} aria-expanded={isShown} aria-label={name}>
      {label}
    </Button>
  );
}

interface RollBackProps {
  agent: ManagedAgent;
  version: number;
  live: Manifest | null;
}

function RollBack({ agent, version, live }: RollBackProps) {
  const action = useAction(
    () => post('/agents/{agentId}/rollback', { params: { agentId: agent.id }, body: { version } }),
    {
      done: (answer) => `Version ${version} of ${agent.name} is live again, as version ${answer.agent.liveVersion}.`,
      ask: {
        title: `Roll ${agent.name} back to version ${version}?`,
        message: <RollBackQuestion agent={agent} version={version} live={live} />,
        action: 'Roll back',
        isDangerous: true,
      },
    },
  );
  const target = `Agent ${agent.name} to version ${version}`;
  return <ActionButton action={action} label="Roll back" target={target} />;
}

function RollBackQuestion({ agent, version, live }: RollBackProps) {
  return (
    <Stack gap="xs">
      <Text size="sm">
        Its manifest becomes live again, as the next version. New Runs use it; existing Runs keep their version.
        Changes:
      </Text>
      <Version agentId={agent.id} version={version}>
        {(manifest) => (
          <ManifestDiff before={live ?? {}} after={manifest} of={`From the live version to version ${version}`} />
        )}
      </Version>
    </Stack>
  );
}

interface VersionProps {
  agentId: string;
  version: number;
  children: (manifest: Manifest) => ReactNode;
}

function Version({ agentId, version, children }: VersionProps) {
  const query = useOperation('/agents/{agentId}/versions/{version}', { params: { agentId, version } });
  return <QueryState query={query}>{({ manifest }) => children(manifest)}</QueryState>;
}
