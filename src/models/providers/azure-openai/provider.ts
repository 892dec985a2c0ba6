import { OPENAI_LIKE, type ProviderDeclaration } from "../provider.ts";

/** `spec.runtime.model` is the name of the deployment, `endpointName` the name of the resource. */
export const azureOpenai: ProviderDeclaration = {
  ...OPENAI_LIKE,
  name: "azure-openai-service",
  aliases: ["azure-openai", "azure"],
  title: "Azure OpenAI",
  baseUrl: "https://{endpointName}.openai.azure.com",
  endpointHosts: [".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com"],
  prefix: "/openai/v1",
  // Its own client addresses by deployment, with the version in the query.
  rootPaths: ["/openai/"],
  versionedPaths: { configKey: "apiVersion", prefix: "/openai/deployments/{model}", query: "api-version" },
  auth: { header: "api-key" },
  secretNames: ["apiKey", "AZURE_OPENAI_API_KEY", "AZURE_API_KEY"],
  dialects: [...OPENAI_LIKE.dialects, "openai-responses"],
  realtime: { versionedPath: "/openai/realtime" },
};
