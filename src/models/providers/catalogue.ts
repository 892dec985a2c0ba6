/** Every provider, one line each. */
import { anthropic } from "./anthropic/provider.ts";
import { azureOpenai } from "./azure-openai/provider.ts";
import { cerebras } from "./cerebras/provider.ts";
import { cohere } from "./cohere/provider.ts";
import { deepseek } from "./deepseek/provider.ts";
import { gemini } from "./gemini/provider.ts";
import { groq } from "./groq/provider.ts";
import { huggingface } from "./huggingface/provider.ts";
import { mistral } from "./mistral/provider.ts";
import { mock } from "./mock/provider.ts";
import { openai } from "./openai/provider.ts";
import { openaiCompatible } from "./openai-compatible/provider.ts";
import type { ProviderDeclaration } from "./provider.ts";
import { xai } from "./xai/provider.ts";

export const PROVIDERS: readonly ProviderDeclaration[] = [
  openai,
  anthropic,
  gemini,
  mistral,
  groq,
  xai,
  deepseek,
  cerebras,
  azureOpenai,
  cohere,
  huggingface,
  openaiCompatible,
  mock,
];

const BY_NAME = new Map(
  PROVIDERS.flatMap((provider) =>
    [provider.name, ...(provider.aliases ?? [])].map((name) => [name, provider] as const),
  ),
);

export const findProvider = (name: string | undefined): ProviderDeclaration | null =>
  (name === undefined ? undefined : BY_NAME.get(name)) ?? null;

/** An unknown type is taken for a server that speaks OpenAI's words; its connection must say where it is. */
export const providerOf = (runtimeType: string | undefined, integration: string | undefined): ProviderDeclaration =>
  findProvider(runtimeType) ?? findProvider(integration) ?? openaiCompatible;
