/// <reference lib="esnext.disposable" preserve="true" />
export { Agent, type AskOptions, Thread, type ThreadMessage } from "./agent.ts";
export { Berth, type BerthOptions, defaultBerth, setDefaultBerth, type WithBerth } from "./berth.ts";
export type { CallOptions, Items } from "./core/call.ts";
export { BerthError } from "./core/errors.ts";
export type { ConnectionOptions } from "./credentials/connection.ts";
export type { Api } from "./generated/api.ts";
export {
  Execution,
  type ExecutionRecord,
  Job,
  type JobOptions,
  type JobRunOptions,
  StartedExecution,
  type TaskRecord,
  type WaitOptions,
} from "./job.ts";
export type { LogLine, LogOptions } from "./logs.ts";
export { McpServer, type Tool, type ToolResult } from "./mcp.ts";
export {
  type ChatAnswer,
  type ChatInput,
  type ChatMessage,
  Model,
  type ModelOptions,
  type ResponsesAnswer,
  type TokenUsage,
} from "./model.ts";
export type { OfficialClass, OfficialOptions } from "./official.ts";
export type { CodeContext, CodeError, CodeExecution, CodeLanguage, CodeOptions, CodeResult } from "./sandbox/code.ts";
export type { Mount, SandboxDrives } from "./sandbox/drives.ts";
export type { FileChange, FileData, FileEntry, FoundText, SandboxFiles, WriteOptions } from "./sandbox/files.ts";
export type { Preview, PreviewOptions } from "./sandbox/preview.ts";
export type { Finished, OutputLine, ProcessState, SandboxProcess } from "./sandbox/process.ts";
export type { CommandOptions, RunOptions } from "./sandbox/run.ts";
export { type ForkOptions, Sandbox, type SandboxOptions, type StartOptions } from "./sandbox/sandbox.ts";
export { Drive, type DriveOptions, Volume, type VolumeOptions } from "./storage.ts";
export { type ModelUsageReport, modelUsage, type UsageOptions, type UsageReport, usage } from "./usage.ts";
