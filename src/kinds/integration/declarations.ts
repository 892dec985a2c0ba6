/** Third-party services that a connection can be made to, as data: what they need and how they are spoken to. */

export interface Endpoint {
  method: "GET" | "POST";
  /** Members of an answer, and of the last part of a stream, that say how many tokens were used. */
  token?: TokenMembers;
  streamToken?: TokenMembers;
}

interface TokenMembers {
  sent: string;
  received: string;
  total?: string;
}

export interface IntegrationDeclaration {
  name: string;
  title: string;
  aliases?: readonly string[];
  /** Members of a connection's secret, of which the first is the usual one. */
  secrets: readonly string[];
  /** Members of a connection's config that matter. */
  config?: readonly string[];
  baseUrl?: string;
  /** Sent with each call; {{NAME}} stands for a secret, {{access_token}} for what the token address gives. */
  headers?: Readonly<Record<string, string>>;
  params?: Readonly<Record<string, string>>;
  /** Where a refresh token is exchanged; a connection's config may name another. */
  tokenUrl?: string;
  endpoints?: Readonly<Record<string, Endpoint>>;
}

const OPENAI_USAGE: TokenMembers = {
  sent: "usage.prompt_tokens",
  received: "usage.completion_tokens",
  total: "usage.total_tokens",
};
const RESPONSES_USAGE: TokenMembers = {
  sent: "usage.input_tokens",
  received: "usage.output_tokens",
  total: "usage.total_tokens",
};

const chat: Endpoint = { method: "POST", token: OPENAI_USAGE, streamToken: OPENAI_USAGE };
const responses: Endpoint = { method: "POST", token: RESPONSES_USAGE, streamToken: RESPONSES_USAGE };
const embeddings: Endpoint = { method: "POST", token: OPENAI_USAGE };

const CHAT_ONLY = { "/v1/chat/completions": chat };
const CHAT_AND_EMBEDDINGS = { ...CHAT_ONLY, "/v1/embeddings": embeddings };
const BEARER = { authorization: "Bearer {{apiKey}}" };

const openaiLike = (
  name: string,
  title: string,
  baseUrl: string,
  variable: string,
  endpoints: Record<string, Endpoint> = CHAT_ONLY,
): IntegrationDeclaration => ({ name, title, baseUrl, secrets: ["apiKey", variable], headers: BEARER, endpoints });

const GEMINI_USAGE: TokenMembers = {
  sent: "usageMetadata.promptTokenCount",
  received: "usageMetadata.candidatesTokenCount",
  total: "usageMetadata.totalTokenCount",
};
const ANTHROPIC_USAGE: TokenMembers = { sent: "usage.input_tokens", received: "usage.output_tokens" };
const COHERE_USAGE: TokenMembers = { sent: "usage.tokens.input_tokens", received: "usage.tokens.output_tokens" };

const MODEL_PROVIDERS: readonly IntegrationDeclaration[] = [
  openaiLike("openai", "OpenAI", "https://api.openai.com", "OPENAI_API_KEY", {
    ...CHAT_AND_EMBEDDINGS,
    "/v1/responses": responses,
  }),
  {
    name: "anthropic",
    title: "Anthropic",
    baseUrl: "https://api.anthropic.com",
    secrets: ["apiKey", "ANTHROPIC_API_KEY"],
    headers: { "x-api-key": "{{apiKey}}", "anthropic-version": "2023-06-01" },
    endpoints: { "/v1/messages": { method: "POST", token: ANTHROPIC_USAGE, streamToken: ANTHROPIC_USAGE } },
  },
  {
    name: "gemini",
    title: "Google Gemini",
    aliases: ["google", "google-gemini"],
    baseUrl: "https://generativelanguage.googleapis.com",
    secrets: ["apiKey", "GEMINI_API_KEY", "GOOGLE_API_KEY"],
    headers: { "x-goog-api-key": "{{apiKey}}" },
    endpoints: {
      "/v1beta/models/{model}:generateContent": { method: "POST", token: GEMINI_USAGE },
      "/v1beta/models/{model}:streamGenerateContent": { method: "POST", streamToken: GEMINI_USAGE },
    },
  },
  openaiLike("mistral", "Mistral AI", "https://api.mistral.ai", "MISTRAL_API_KEY", CHAT_AND_EMBEDDINGS),
  openaiLike("groq", "Groq", "https://api.groq.com/openai", "GROQ_API_KEY"),
  openaiLike("xai", "xAI", "https://api.x.ai", "XAI_API_KEY", { ...CHAT_ONLY, "/v1/responses": responses }),
  openaiLike("deepseek", "DeepSeek", "https://api.deepseek.com", "DEEPSEEK_API_KEY"),
  openaiLike("cerebras", "Cerebras", "https://api.cerebras.ai", "CEREBRAS_API_KEY"),
  {
    name: "cohere",
    title: "Cohere",
    baseUrl: "https://api.cohere.com",
    secrets: ["apiKey", "COHERE_API_KEY", "CO_API_KEY"],
    headers: BEARER,
    endpoints: { "/v2/chat": { method: "POST", token: COHERE_USAGE, streamToken: COHERE_USAGE } },
  },
  {
    name: "azure-openai-service",
    title: "Azure OpenAI",
    aliases: ["azure-openai", "azure"],
    baseUrl: "https://{endpointName}.openai.azure.com/openai",
    secrets: ["apiKey", "AZURE_OPENAI_API_KEY", "AZURE_API_KEY"],
    config: ["apiVersion", "baseUrl"],
    headers: { "api-key": "{{apiKey}}" },
    endpoints: CHAT_AND_EMBEDDINGS,
  },
  openaiLike("huggingface", "Hugging Face", "https://router.huggingface.co", "HF_TOKEN"),
  {
    name: "openai-compatible",
    title: "OpenAI-compatible server",
    aliases: ["vllm", "llama.cpp", "ollama"],
    secrets: ["apiKey", "OPENAI_API_KEY"],
    config: ["baseUrl"],
    headers: BEARER,
    endpoints: CHAT_AND_EMBEDDINGS,
  },
];

/** The customer's own backend runs the consent; the platform keeps the refresh token and exchanges it. */
const oauth = (name: string, title: string, tokenUrl: string): IntegrationDeclaration => ({
  name,
  title,
  tokenUrl,
  secrets: ["CLIENT_ID", "CLIENT_SECRET", "REFRESH_TOKEN"],
  config: ["tokenUrl"],
  headers: { authorization: "Bearer {{access_token}}" },
});

const token = (name: string, title: string, secret: string): IntegrationDeclaration => ({
  name,
  title,
  secrets: [secret],
  headers: { authorization: `Bearer {{${secret}}}` },
});

const GOOGLE_TOKEN_URL = "https://oauth2.googleapis.com/token";
const MICROSOFT_TOKEN_URL = "https://login.microsoftonline.com/common/oauth2/v2.0/token";

export const INTEGRATIONS: readonly IntegrationDeclaration[] = [
  ...MODEL_PROVIDERS,
  oauth("google-drive", "Google Drive", GOOGLE_TOKEN_URL),
  oauth("google-calendar", "Google Calendar", GOOGLE_TOKEN_URL),
  oauth("google-sheets", "Google Sheets", GOOGLE_TOKEN_URL),
  oauth("gmail", "Gmail", GOOGLE_TOKEN_URL),
  oauth("outlook", "Microsoft Outlook", MICROSOFT_TOKEN_URL),
  oauth("onedrive", "Microsoft OneDrive", MICROSOFT_TOKEN_URL),
  oauth("dropbox", "Dropbox", "https://api.dropboxapi.com/oauth2/token"),
  oauth("hubspot", "HubSpot", "https://api.hubapi.com/oauth/v1/token"),
  oauth("salesforce", "Salesforce", "https://login.salesforce.com/services/oauth2/token"),
  token("github", "GitHub", "GITHUB_TOKEN"),
  token("slack", "Slack", "SLACK_BOT_TOKEN"),
  token("notion", "Notion", "NOTION_TOKEN"),
  token("linear", "Linear", "LINEAR_API_KEY"),
];

const BY_NAME = new Map(
  INTEGRATIONS.flatMap((declaration) =>
    [declaration.name, ...(declaration.aliases ?? [])].map((name) => [name, declaration] as const),
  ),
);

export const findIntegration = (name: string): IntegrationDeclaration | null => BY_NAME.get(name) ?? null;
