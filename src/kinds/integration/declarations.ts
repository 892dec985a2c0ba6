/**
 * Third-party services that a connection can be made to: the secrets and settings each needs, how its API is called,
 * and the tools of its MCP server. Model providers are declared in src/models.
 */
import type { RestTool } from "./rest-tool.ts";
import * as tools from "./rest-tools.ts";

export interface IntegrationDeclaration {
  name: string;
  title: string;
  /** Names of the connection's secrets; the first is the usual one. */
  secrets: readonly string[];
  /** Names of the connection's config members that the platform reads. */
  config?: readonly string[];
  /** Headers of each call. {{NAME}} is replaced by a secret, {{access_token}} by the current access token. */
  headers?: Readonly<Record<string, string>>;
  /** URL that exchanges a refresh token. The connection's config can override it. */
  tokenUrl?: string;
  /** Base URL of the API. The connection's config can override it, and must where each customer has its own URL. */
  baseUrl?: string;
  /** Tools of the service's MCP server, which the platform answers itself. */
  tools?: readonly RestTool[];
}

type Api = Pick<IntegrationDeclaration, "name" | "title" | "tools" | "baseUrl">;

/** The customer's own backend obtains the user's consent; the platform stores and exchanges the refresh token. */
const oauth = (tokenUrl: string, api: Api): IntegrationDeclaration => ({
  ...api,
  tokenUrl,
  secrets: ["CLIENT_ID", "CLIENT_SECRET", "REFRESH_TOKEN"],
  config: ["tokenUrl", "baseUrl"],
  headers: { authorization: "Bearer {{access_token}}" },
});

const token = (secret: string, api: Api, headers: Record<string, string> = {}): IntegrationDeclaration => ({
  ...api,
  secrets: [secret],
  config: ["baseUrl"],
  headers: { authorization: `Bearer {{${secret}}}`, ...headers },
});

const GOOGLE_TOKEN_URL = "https://oauth2.googleapis.com/token";
const MICROSOFT_TOKEN_URL = "https://login.microsoftonline.com/common/oauth2/v2.0/token";
const GRAPH_URL = "https://graph.microsoft.com/v1.0";

export const INTEGRATIONS: readonly IntegrationDeclaration[] = [
  oauth(GOOGLE_TOKEN_URL, {
    name: "google-drive",
    title: "Google Drive",
    baseUrl: "https://www.googleapis.com/drive/v3",
    tools: tools.GOOGLE_DRIVE,
  }),
  oauth(GOOGLE_TOKEN_URL, {
    name: "google-calendar",
    title: "Google Calendar",
    baseUrl: "https://www.googleapis.com/calendar/v3",
    tools: tools.GOOGLE_CALENDAR,
  }),
  oauth(GOOGLE_TOKEN_URL, {
    name: "google-sheets",
    title: "Google Sheets",
    baseUrl: "https://sheets.googleapis.com/v4",
    tools: tools.GOOGLE_SHEETS,
  }),
  oauth(GOOGLE_TOKEN_URL, {
    name: "gmail",
    title: "Gmail",
    baseUrl: "https://gmail.googleapis.com/gmail/v1",
    tools: tools.GMAIL,
  }),
  oauth(MICROSOFT_TOKEN_URL, { name: "outlook", title: "Microsoft Outlook", baseUrl: GRAPH_URL, tools: tools.OUTLOOK }),
  oauth(MICROSOFT_TOKEN_URL, {
    name: "onedrive",
    title: "Microsoft OneDrive",
    baseUrl: GRAPH_URL,
    tools: tools.ONEDRIVE,
  }),
  oauth("https://api.dropboxapi.com/oauth2/token", {
    name: "dropbox",
    title: "Dropbox",
    baseUrl: "https://api.dropboxapi.com/2",
    tools: tools.DROPBOX,
  }),
  oauth("https://api.hubapi.com/oauth/v1/token", {
    name: "hubspot",
    title: "HubSpot",
    baseUrl: "https://api.hubapi.com",
    tools: tools.HUBSPOT,
  }),
  oauth("https://login.salesforce.com/services/oauth2/token", {
    name: "salesforce",
    title: "Salesforce",
    tools: tools.SALESFORCE,
  }),
  // The PostgreSQL server runs as a workload that gets this URL; see hub/servers.ts.
  { name: "postgres", title: "PostgreSQL", secrets: ["POSTGRES_URL"] },
  // Credentials for pulling images; see image/pull-credentials.ts.
  { name: "registry", title: "Container registry", secrets: ["USERNAME", "PASSWORD"], config: ["registry"] },
  token("GITHUB_TOKEN", { name: "github", title: "GitHub", baseUrl: "https://api.github.com", tools: tools.GITHUB }),
  token("SLACK_BOT_TOKEN", { name: "slack", title: "Slack", baseUrl: "https://slack.com/api", tools: tools.SLACK }),
  token(
    "NOTION_TOKEN",
    { name: "notion", title: "Notion", baseUrl: "https://api.notion.com/v1", tools: tools.NOTION },
    { "notion-version": "2022-06-28" },
  ),
  token(
    "LINEAR_API_KEY",
    { name: "linear", title: "Linear", baseUrl: "https://api.linear.app", tools: tools.LINEAR },
    { authorization: "{{LINEAR_API_KEY}}" },
  ),
];

const BY_NAME = new Map(INTEGRATIONS.map((declaration) => [declaration.name, declaration]));

export const findIntegration = (name: string): IntegrationDeclaration | null => BY_NAME.get(name) ?? null;
