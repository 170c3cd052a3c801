import type { ComponentType } from 'react';
import {
  IconActivity,
  IconUsers,
  IconBuilding,
  IconListDetails,
  IconMessages,
  IconRobot,
  IconShieldCheck,
  IconKey,
  IconHistory,
  IconHandStop,
} from '@tabler/icons-react';
import { lazy } from './lazy.tsx';

export interface Page {
  /** The path below /console, as a pattern of wouter. */
  path: string;
  component: ComponentType;
  /** The link in the navigation. A page without it is linked from another page. */
  link?: { label: string; icon: ComponentType<{ size?: number }> };
}

/** All pages, in the order of the navigation. Each loads when it is first shown. */
export const PAGES: Page[] = [
  { path: '/', component: lazy(() => import('./pages/overview.tsx')), link: { label: 'Overview', icon: IconActivity } },
  { path: '/runs', component: lazy(() => import('./pages/runs.tsx')), link: { label: 'Runs', icon: IconListDetails } },
  { path: '/runs/:runId', component: lazy(() => import('./pages/run.tsx')) },
  {
    path: '/confirmations',
    component: lazy(() => import('./pages/confirmations.tsx')),
    link: { label: 'Confirmations', icon: IconHandStop },
  },
  {
    path: '/threads',
    component: lazy(() => import('./pages/threads.tsx')),
    link: { label: 'Threads', icon: IconMessages },
  },
  { path: '/threads/:threadId', component: lazy(() => import('./pages/thread.tsx')) },
  { path: '/agents', component: lazy(() => import('./pages/agents.tsx')), link: { label: 'Agents', icon: IconRobot } },
  { path: '/agents/:agentId', component: lazy(() => import('./pages/agent.tsx')) },
  {
    path: '/organizations',
    component: lazy(() => import('./pages/organizations.tsx')),
    link: { label: 'Organizations', icon: IconBuilding },
  },
  { path: '/organizations/:organizationId', component: lazy(() => import('./pages/organization.tsx')) },
  { path: '/people', component: lazy(() => import('./pages/people.tsx')), link: { label: 'People', icon: IconUsers } },
  { path: '/people/:personId', component: lazy(() => import('./pages/person.tsx')) },
  { path: '/tokens', component: lazy(() => import('./pages/tokens.tsx')), link: { label: 'Tokens', icon: IconKey } },
  {
    path: '/audit',
    component: lazy(() => import('./pages/audit.tsx')),
    link: { label: 'Audit log', icon: IconHistory },
  },
  {
    path: '/checks',
    component: lazy(() => import('./pages/checks.tsx')),
    link: { label: 'Checks', icon: IconShieldCheck },
  },
];
