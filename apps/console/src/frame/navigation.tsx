import { AppShell, NavLink } from '@mantine/core';
import { IconExternalLink } from '@tabler/icons-react';
import { Link, useLocation } from 'wouter';
import { PAGES } from '../pages.tsx';

/** Served beside the console: the browser loads them as pages of their own. */
const ELSEWHERE = [
  { label: 'Queue (Bull Board)', href: '/console/queues' },
  { label: 'API reference', href: '/api/docs' },
];

export function Navigation({ onFollow }: { onFollow: () => void }) {
  const [location] = useLocation();
  const isHere = (path: string) =>
    path === '/' ? location === '/' : location === path || location.startsWith(`${path}/`);
  return (
    <>
      <AppShell.Section grow>
        {PAGES.map(({ path, link }) =>
          link === undefined ? null : (
            <NavLink
              key={path}
              component={Link}
              href={path}
              label={link.label}
              leftSection={<link.icon size={16} />}
              active={isHere(path)}
              aria-current={isHere(path) ? 'page' : undefined}
              onClick={onFollow}
            />
          ),
        )}
      </AppShell.Section>
      <AppShell.Section>
        {ELSEWHERE.map(({ label, href }) => (
          <NavLink key={href} href={href} label={label} rightSection={<IconExternalLink size={14} />} />
        ))}
      </AppShell.Section>
    </>
  );
}
