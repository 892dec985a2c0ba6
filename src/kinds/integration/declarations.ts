/**
 * Third-party services that a connection can be made to, beside the model providers (which the gateway knows): what
 * they need and how they are spoken to.
 */

export interface IntegrationDeclaration {
  name: string;
  title: string;
  /** Members of a connection's secret, of which the first is the usual one. */
  secrets: readonly string[];
  /** Members of a connection's config that matter. */
  config?: readonly string[];
  /** Sent with each call; {{NAME}} stands for a secret, {{access_token}} for what the token address gives. */
  headers?: Readonly<Record<string, string>>;
  /** Where a refresh token is exchanged; a connection's config may name another. */
  tokenUrl?: string;
}

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

const BY_NAME = new Map(INTEGRATIONS.map((declaration) => [declaration.name, declaration]));

export const findIntegration = (name: string): IntegrationDeclaration | null => BY_NAME.get(name) ?? null;
