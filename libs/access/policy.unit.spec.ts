import type { Caller, PersonCaller, ServiceCaller } from './caller.ts';
import { agentAccess, isOwn, mayAttribute, ownerFor, type AgentAccess, type AgentStanding } from './policy.ts';

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
const operator: Caller = { kind: 'operator', tokenName: 'o', tokenId: 'T3', limits };

const agent = (more: Partial<AgentStanding> = {}): AgentStanding => ({
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
const invited = (more: Partial<AgentStanding> = {}) => agent({ access: 'invited', ...more });

const stranger = person({ organizationIds: new Set(['O2']) });
const named = person({ invitedAgentIds: new Set(['A1']) });
const formerMember = person({ organizationIds: new Set(), invitedAgentIds: new Set(['A1']) });
const formerOwner = person({ organizationIds: new Set(), personId: 'P9' });
const notListed = service({ agentIds: new Set(['A2']) });
const otherOrganization = service({ organizationId: 'O2' });

it.each<[string, Caller, AgentStanding, AgentAccess]>([
  ['a member', person(), agent(), 'ok'],
  ['a stranger', stranger, agent(), 'forbidden'],
  ['a member who is not invited', person(), invited(), 'forbidden'],
  ['a member who is named', named, invited(), 'ok'],
  ['the owner', person({ personId: 'P9' }), invited(), 'ok'],
  ['one who is named and no member any more', formerMember, invited(), 'forbidden'],
  ['the owner who is no member any more', formerOwner, invited(), 'forbidden'],
  ['a service that lists it', service(), invited(), 'ok'],
  ['a service that does not', notListed, agent(), 'forbidden'],
  ['a service of another organization', otherOrganization, agent(), 'forbidden'],
  ['an operator', operator, agent(), 'forbidden'],
  // The order of docs/spec/decisions.md#access.
  ['a deleted agent', stranger, agent({ deleted: true }), 'not_found'],
  ['forbidden, whatever its state', stranger, agent({ published: false, apiEnabled: false }), 'forbidden'],
  [
    'not published, whatever else',
    person(),
    agent({ published: false, apiEnabled: false, liveVersion: null }),
    'agent_not_published',
  ],
  ['published without API access', service(), agent({ apiEnabled: false }), 'service_inactive'],
  ['published without a live version', person(), agent({ liveVersion: null }), 'service_inactive'],
])('agentAccess: %s', (_, caller, standing, access) => {
  expect(agentAccess(caller, standing)).toBe(access);
});

const ofPerson = { owner_person_id: 'P1', owner_service_token_id: null };
const ofService = { owner_person_id: null, owner_service_token_id: 'T2' };
const attributed = { owner_person_id: 'P1', owner_service_token_id: 'T2' };

it.each([
  ['a person, their own', person(), ofPerson, true],
  ['a person, by another token of theirs', person({ tokenId: 'T7' }), ofPerson, true],
  ['a person, attributed to them', person(), attributed, true],
  ['a person, a colleague’s', person({ personId: 'P2' }), ofPerson, false],
  ['a person, a service’s', person(), ofService, false],
  ['a service, its own', service(), ofService, true],
  ['a service, its own that is attributed', service(), attributed, true],
  ['a service, another token of the organization', service({ tokenId: 'T7' }), ofService, false],
  ['a service, a person’s', service(), ofPerson, false],
  ['an operator', operator, attributed, false],
])('isOwn: %s', (_, caller, thread, visible) => {
  expect(isOwn(caller, thread)).toBe(visible);
});

it('lets only service tokens create Threads for a person, and only those that may', () => {
  expect(mayAttribute(service({ allowAttribution: true }))).toBe(true);
  for (const caller of [service(), person(), operator]) expect(mayAttribute(caller)).toBe(false);
});

it('gives a Thread that is created for a person two owners', () => {
  expect(ownerFor(service({ allowAttribution: true }), 'P1')).toEqual({ personId: 'P1', serviceTokenId: 'T2' });
});

it('makes whoever creates a Thread one who sees it', () => {
  for (const caller of [person(), service()]) {
    const { personId, serviceTokenId } = ownerFor(caller);
    expect(isOwn(caller, { owner_person_id: personId, owner_service_token_id: serviceTokenId })).toBe(true);
  }
});
