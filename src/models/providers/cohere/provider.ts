import { OPENAI_LIKE, type ProviderDeclaration } from "../provider.ts";

export const cohere: ProviderDeclaration = {
  ...OPENAI_LIKE,
  name: "cohere",
  title: "Cohere",
  baseUrl: "https://api.cohere.com",
  prefix: "/compatibility/v1",
  rootPaths: ["/v2/", "/v1/chat", "/v1/embed", "/v1/rerank", "/v1/tokenize", "/v1/detokenize", "/v1/models"],
  secretNames: ["apiKey", "COHERE_API_KEY", "CO_API_KEY"],
  defaultPath: "/v2/chat",
  dialects: ["openai-chat", "openai-embeddings", "cohere-chat", "cohere-other"],
  streamUsage: "given",
  // The compatible endpoint refuses the first, and knows the second by its older name.
  chatMembers: { stream_options: null, max_completion_tokens: "max_tokens" },
  // Twenty unless asked for more.
  modelsPath: "/v1/models?page_size=1000",
};
