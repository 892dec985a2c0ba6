/** How a service account asks for a token. */
import assert from "node:assert/strict";

export const GRANT = { grant_type: "client_credentials" };

export interface Credentials {
  id: string;
  secret: string;
}

export const basic = ({ id, secret }: Credentials): string =>
  `Basic ${Buffer.from(`${id}:${secret}`).toString("base64")}`;

export async function askToken(
  url: string,
  fields: Record<string, unknown>,
  headers: Record<string, string> = {},
  form = false,
) {
  const response = await fetch(`${url}/oauth/token`, {
    method: "POST",
    headers: { "content-type": form ? "application/x-www-form-urlencoded" : "application/json", ...headers },
    body: form ? new URLSearchParams(fields as Record<string, string>).toString() : JSON.stringify(fields),
  });
  return {
    status: response.status,
    body: (await response.json()) as Record<string, string>,
    headers: response.headers,
  };
}

export async function machineToken(url: string, machine: Credentials, scope?: string): Promise<string> {
  const authorization = basic(machine);
  const { status, body } = await askToken(url, { ...GRANT, ...(scope ? { scope } : {}) }, { authorization });
  assert.equal(status, 200, JSON.stringify(body));
  return body.access_token ?? "";
}
