import type { ProviderDeclaration } from "../provider.ts";
import { geminiChat } from "./chat.ts";

export const gemini: ProviderDeclaration = {
  name: "gemini",
  aliases: ["google", "google-gemini"],
  title: "Google Gemini",
  baseUrl: "https://generativelanguage.googleapis.com",
  prefix: "/v1beta",
  rootPaths: ["/v1/", "/v1alpha/", "/upload/"],
  // Embeddings are served in OpenAI's shape by the provider itself.
  pathAliases: { "/v1/embeddings": "/v1beta/openai/embeddings", "/embeddings": "/v1beta/openai/embeddings" },
  auth: { header: "x-goog-api-key" },
  secretNames: ["apiKey", "GEMINI_API_KEY", "GOOGLE_API_KEY"],
  callerHeaders: ["x-goog-api-client"],
  droppedQuery: ["key"],
  defaultPath: "/v1beta/models/{model}:generateContent",
  dialects: ["gemini-generate", "gemini-embed", "openai-embeddings"],
  chat: geminiChat,
  chatMember: "messages",
  streamUsage: "given",
  modelsPath: "/models?pageSize=1000",
};
