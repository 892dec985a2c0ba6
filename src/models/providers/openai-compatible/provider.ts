import { OPENAI_LIKE, type ProviderDeclaration } from "../provider.ts";

/** vLLM, llama.cpp, Ollama and every other server that speaks the same words; most need no key. */
export const openaiCompatible: ProviderDeclaration = {
  ...OPENAI_LIKE,
  name: "openai-compatible",
  aliases: ["vllm", "llama.cpp", "ollama", "public_model"],
  title: "OpenAI-compatible server",
  baseUrl: null,
  secretNames: ["apiKey", "OPENAI_API_KEY"],
  secretOptional: true,
  realtime: {},
};
