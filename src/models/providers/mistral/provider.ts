import { OPENAI_LIKE, type ProviderDeclaration } from "../provider.ts";

export const mistral: ProviderDeclaration = {
  ...OPENAI_LIKE,
  name: "mistral",
  title: "Mistral AI",
  baseUrl: "https://api.mistral.ai",
  secretNames: ["apiKey", "MISTRAL_API_KEY"],
  streamUsage: "given",
  // Mistral refuses unknown members with 422. It sends usage in the last chunk of a stream without being asked.
  chatMembers: {
    stream_options: null,
    max_completion_tokens: "max_tokens",
    seed: "random_seed",
    user: null,
    store: null,
    service_tier: null,
  },
};
