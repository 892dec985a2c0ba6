import { OPENAI_LIKE, type ProviderDeclaration } from "../provider.ts";

export const deepseek: ProviderDeclaration = {
  ...OPENAI_LIKE,
  name: "deepseek",
  title: "DeepSeek",
  baseUrl: "https://api.deepseek.com",
  rootPaths: ["/beta/", "/anthropic/"],
  secretNames: ["apiKey", "DEEPSEEK_API_KEY"],
  chatMembers: { max_completion_tokens: "max_tokens" },
};
