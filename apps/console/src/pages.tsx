import type { ComponentType } from 'react';
import {
  IconActivity,
  IconBuilding,
  IconListDetails,
  IconMessages,
  IconRobot,
  IconShieldCheck,
  IconKey,
  IconHistory,
  IconHandStop,
} from '@tabler/icons-react';
import { late } from './late.tsx';

export interface Page {
  /** Below /console, as wouter writes patterns. */
  path: string;
  component: ComponentType;
  /** In the navigation; without it the page is reached from another. */
  link?: { label: string; icon: ComponentType<{ size?: number }> };
}

/** All pages, in the order of the navigation. Each loads when it is first shown. */
export const PAGES: Page[] = [
  { path: '/', component: late(() => import('./pages/overview.tsx')), link: { label: 'Overview', icon: IconActivity } },
  { path: '/runs', component: late(() => import('./pages/runs.tsx')), link: { label: 'Runs', icon: IconListDetails } },
  { path: '/runs/:runId', component: late(() => import('./pages/run.tsx')) },
  {
    path: '/confirmations',
    component: late(() => import('./pages/confirmations.tsx')),
    link: { label: 'Confirmations', icon: IconHandStop },
  },
  {
    path: '/threads',
    component: late(() => import('./pages/threads.tsx')),
    link: { label: 'Threads', icon: IconMessages },
  },
  { path: '/threads/:threadId', component: late(() => import('./pages/thread.tsx')) },
  { path: '/agents', component: late(() => import('./pages/agents.tsx')), link: { label: 'Agents', icon: IconRobot } },
  { path: '/agents/:agentId', component: late(() => import('./pages/agent.tsx')) },
  {
    path: '/organizations',
    component: late(() => import('./pages/organizations.tsx')),
    link: { label: 'Organizations', icon: IconBuilding },
  },
  { path: '/tokens', component: late(() => import('./pages/tokens.tsx')), link: { label: 'Tokens', icon: IconKey } },
  {
    path: '/audit',
    component: late(() => import('./pages/audit.tsx')),
    link: { label: 'Audit log', icon: IconHistory },
  },
  {
    path: '/checks',
    component: late(() => import('./pages/checks.tsx')),
    link: { label: 'Checks', icon: IconShieldCheck },
  },
];
