import { OPENAI_LIKE, type ProviderDeclaration } from "../provider.ts";

export const cerebras: ProviderDeclaration = {
  ...OPENAI_LIKE,
  name: "cerebras",
  title: "Cerebras",
  baseUrl: "https://api.cerebras.ai",
  secretNames: ["apiKey", "CEREBRAS_API_KEY"],
};
