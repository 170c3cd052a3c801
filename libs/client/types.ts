import type { components } from './generated/api.ts';

type Schemas = components['schemas'];

/** An entry of the log, with its optional fields (docs/api/events.md). */
export type LogEntry = Schemas['ThreadEventLogEntry'];
/** A published Agent, without its configuration. */
export type AgentSummary = Schemas['Agent'];
export type ThreadSummary = Schemas['ThreadSummary'];
export type ThreadAnswer = Schemas['ThreadAnswer'];
export type RunSummary = Schemas['RunSummary'];
/** A confirmation request: whether a tool may be called. */
export type Question = Schemas['ConfirmationRequest'];
export type MessagesPage = Schemas['ListMessagesAnswer'];
export type ThreadsPage = Schemas['ListThreadsAnswer'];
export type PublicFile = Schemas['PublicFile'];
export type FileLink = Schemas['FileLinkAnswer'];
export type BrowserTokenRights = Schemas['CreateBrowserToken'];
export type BrowserToken = Schemas['BrowserTokenAnswer'];
export type SendEventsAnswer = Schemas['SendEventsAnswer'];
export type Decision = Schemas['PermissionDecision']['decision'];
export type FileResource = Schemas['FileResource'];
export type ThreadEventInput = Schemas['SendEvents']['events'][number];
