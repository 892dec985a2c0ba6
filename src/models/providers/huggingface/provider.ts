import { OPENAI_LIKE, type ProviderDeclaration } from "../provider.ts";

/** A dedicated endpoint has its own address: `spec.runtime.endpointName` may be that URL. */
export const huggingface: ProviderDeclaration = {
  ...OPENAI_LIKE,
  name: "huggingface",
  aliases: ["hf_private_endpoint", "hf_public_endpoint"],
  title: "Hugging Face",
  baseUrl: "https://router.huggingface.co",
  endpointHosts: [".endpoints.huggingface.cloud"],
  secretNames: ["apiKey", "HF_TOKEN", "HUGGINGFACE_API_KEY"],
};
