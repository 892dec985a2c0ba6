import type { ProviderDeclaration } from "../provider.ts";
import { anthropicChat } from "./chat.ts";

export const anthropic: ProviderDeclaration = {
  name: "anthropic",
  title: "Anthropic",
  baseUrl: "https://api.anthropic.com",
  prefix: "/v1",
  auth: { header: "x-api-key" },
  secretNames: ["apiKey", "ANTHROPIC_API_KEY"],
  headers: { "anthropic-version": "2023-06-01" },
  callerHeaders: ["anthropic-version", "anthropic-beta", "x-stainless-*"],
  defaultPath: "/v1/messages",
  dialects: ["anthropic-messages", "anthropic-batches"],
  chat: anthropicChat,
  streamUsage: "given",
  modelsPath: "/models?limit=1000",
};
