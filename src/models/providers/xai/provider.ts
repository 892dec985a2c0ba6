import { OPENAI_LIKE, type ProviderDeclaration } from "../provider.ts";

export const xai: ProviderDeclaration = {
  ...OPENAI_LIKE,
  name: "xai",
  title: "xAI",
  baseUrl: "https://api.x.ai",
  secretNames: ["apiKey", "XAI_API_KEY"],
  callerHeaders: ["x-grok-*"],
  dialects: [...OPENAI_LIKE.dialects, "openai-responses"],
  realtime: {},
};
