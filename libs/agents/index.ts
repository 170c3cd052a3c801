export * from './agent-catalogue.ts';
export * from './agents.module.ts';
export * from './echo/echo-commands.ts';
export * from './echo/echo-harness.ts';
export * from './harness.ts';
export * from './manifest.ts';
export { createAgent, publishAgentVersion, type NewAgent } from './publish-agent.ts';
export * from './tool-policy.ts';
