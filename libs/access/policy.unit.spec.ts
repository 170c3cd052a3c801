import type { BrowserCaller, Caller, PersonCaller, ServiceCaller } from './caller.ts';
import { agentAccess, isOwn, mayAttribute, ownerFor, type AgentAccess, type PolicyAgent } from './policy.ts';

const limits = { requestsPerMinute: 1, maxStreams: 1 };

const person = (more: Partial<PersonCaller> = {}): PersonCaller => ({
  kind: 'person',
  tokenId: 'T1',
  limits,
  personId: 'P1',
  organizationIds: new Set(['O1']),
  invitedAgentIds: new Set(),
  ...more,
});
const service = (more: Partial<ServiceCaller> = {}): ServiceCaller => ({
  kind: 'service',
  tokenId: 'T2',
  limits,
  organizationId: 'O1',
  agentIds: new Set(['A1']),
  allowAttribution: false,
  ...more,
});
const browser = (more: Partial<BrowserCaller> = {}): BrowserCaller => ({
  ...{ kind: 'browser', tokenId: 'T2', limits, organizationId: 'O1', agentIds: new Set(['A1']) },
  ...{ userId: 'u1', userKey: 'T2 u1', userLimits: limits, agentId: null, threadId: null },
  ...{ verbs: new Set(), origins: null, expiresAt: Infinity },
  ...more,
});
const operator: Caller = { kind: 'operator', tokenName: 'o', tokenId: 'T3', limits };

const agent = (more: Partial<PolicyAgent> = {}): PolicyAgent => ({
  id: 'A1',
  organizationId: 'O1',
  ownerPersonId: 'P9',
  access: 'organization',
  published: true,
  apiEnabled: true,
  liveVersion: 1,
  deleted: false,
  ...more,
});
const invited = (more: Partial<PolicyAgent> = {}) => agent({ access: 'invited', ...more });

const stranger = person({ organizationIds: new Set(['O2']) });
const named = person({ invitedAgentIds: new Set(['A1']) });
const formerMember = person({ organizationIds: new Set(), invitedAgentIds: new Set(['A1']) });
const formerOwner = person({ organizationIds: new Set(), personId: 'P9' });
const notListed = service({ agentIds: new Set(['A2']) });
const otherOrganization = service({ organizationId: 'O2' });

it.each<[string, Caller, PolicyAgent, AgentAccess]>([
  ['a member of the organization', person(), agent(), 'ok'],
  ['a stranger', stranger, agent(), 'forbidden'],
  ['an uninvited member', person(), invited(), 'forbidden'],
  ['an invited member', named, invited(), 'ok'],
  ['the owner', person({ personId: 'P9' }), invited(), 'ok'],
  ['an invited former member', formerMember, invited(), 'forbidden'],
  ['an owner who is a former member', formerOwner, invited(), 'forbidden'],
  ['a browser token of a service that lists the agent', browser(), invited(), 'ok'],
  ['a browser token for another agent', browser({ agentIds: new Set(['A2']) }), agent(), 'forbidden'],
  ['a service that lists the agent', service(), invited(), 'ok'],
  ['a service that does not list the agent', notListed, agent(), 'forbidden'],
  ['a service of another organization', otherOrganization, agent(), 'forbidden'],
  ['an operator', operator, agent(), 'forbidden'],
  // The order of docs/spec/decisions.md#access.
  ['a stranger and a deleted agent', stranger, agent({ deleted: true }), 'not_found'],
  ['a stranger and an unpublished agent', stranger, agent({ published: false, apiEnabled: false }), 'forbidden'],
  [
    'an unpublished agent without a live version',
    person(),
    agent({ published: false, apiEnabled: false, liveVersion: null }),
    'agent_not_published',
  ],
  ['a published agent without API access', service(), agent({ apiEnabled: false }), 'service_inactive'],
  ['a published agent without a live version', person(), agent({ liveVersion: null }), 'service_inactive'],
])('decides access for %s', (_, caller, state, access) => {
  expect(agentAccess(caller, state)).toBe(access);
});

const place = { agent_id: 'A1', thread_id: 'H1' };
const ofPerson = { ...place, owner_person_id: 'P1', owner_service_token_id: null };
const ofService = { ...place, owner_person_id: null, owner_service_token_id: 'T2' };
const attributed = { ...place, owner_person_id: 'P1', owner_service_token_id: 'T2' };
const draft = { ...ofService, thread_id: null };

it.each([
  ['the Thread of a person to that person', person(), ofPerson, true],
  ['the Thread of a person to another token of that person', person({ tokenId: 'T7' }), ofPerson, true],
  ['an attributed Thread to its person', person(), attributed, true],
  ['the Thread of a person to another person', person({ personId: 'P2' }), ofPerson, false],
  ['the Thread of a service token to a person', person(), ofService, false],
  ['the Thread of a service token to that token', service(), ofService, true],
  ['an attributed Thread to the service token that created it', service(), attributed, true],
  ['the Thread of a service token to another token of the organization', service({ tokenId: 'T7' }), ofService, false],
  ['the Thread of a person to a service token', service(), ofPerson, false],
  ['an attributed Thread to an operator', operator, attributed, false],
  ['the Thread of a service token to a browser token of it and the user', browser(), ofService, true],
  ['it to a browser token of another service token', browser({ tokenId: 'T7' }), ofService, false],
  ['it to a browser token of another user', browser({ userId: 'u2' }), ofService, false],
  ['it to one for its Agent and Thread', browser({ agentId: 'A1', threadId: 'H1' }), ofService, true],
  ['it to one for another Agent', browser({ agentId: 'A2' }), ofService, false],
  ['it to one for another Thread', browser({ threadId: 'H2' }), ofService, false],
  ['a draft to one for a Thread', browser({ agentId: 'A1', threadId: 'H1' }), draft, true],
  ['a draft for another Agent', browser({ agentId: 'A2' }), draft, false],
  ['the Thread of a person to a browser token', browser(), ofPerson, false],
])('decides visibility of %s', (_, caller, owned, visible) => {
  expect(isOwn(caller, owned, 'u1')).toBe(visible);
});

it('shows things without a user to no browser token', () => {
  expect(isOwn(browser(), draft, null)).toBe(false);
});

it('allows only service tokens with attribution to create Threads for a person', () => {
  expect(mayAttribute(service({ allowAttribution: true }))).toBe(true);
  for (const caller of [service(), person(), operator]) expect(mayAttribute(caller)).toBe(false);
});

it('returns two owners for a Thread created for a person', () => {
  expect(ownerFor(service({ allowAttribution: true }), 'P1')).toEqual({ personId: 'P1', serviceTokenId: 'T2' });
});

it('makes a new Thread visible to its creator', () => {
  for (const caller of [person(), service(), browser()]) {
    const { personId, serviceTokenId } = ownerFor(caller);
    const owned = { ...place, owner_person_id: personId, owner_service_token_id: serviceTokenId };
    expect(isOwn(caller, owned, 'u1')).toBe(true);
  }
});
