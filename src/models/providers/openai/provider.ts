import { OPENAI_LIKE, type ProviderDeclaration } from "../provider.ts";

export const openai: ProviderDeclaration = {
  ...OPENAI_LIKE,
  name: "openai",
  title: "OpenAI",
  baseUrl: "https://api.openai.com",
  secretNames: ["apiKey", "OPENAI_API_KEY"],
  organizationHeader: "openai-organization",
  callerHeaders: ["openai-beta", "openai-project", "idempotency-key", "x-stainless-*"],
  dialects: [...OPENAI_LIKE.dialects, "openai-responses"],
  realtime: {},
};
