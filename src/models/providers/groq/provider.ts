import { OPENAI_LIKE, type ProviderDeclaration } from "../provider.ts";

export const groq: ProviderDeclaration = {
  ...OPENAI_LIKE,
  name: "groq",
  title: "Groq",
  baseUrl: "https://api.groq.com",
  // Its own client writes the whole prefix, others only the version.
  prefix: "/openai/v1",
  secretNames: ["apiKey", "GROQ_API_KEY"],
  dialects: [...OPENAI_LIKE.dialects, "openai-responses"],
};
