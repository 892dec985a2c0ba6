/** Where a client that was refused reads who gives out credentials, and what it reads there (RFC 9728). */
export const RESOURCE_METADATA = "/.well-known/oauth-protected-resource";

export interface ResourceMetadata {
  resource: string;
  authorization_servers: string[];
  scopes_supported: string[];
  bearer_methods_supported: string[];
}

/** Clients compare `resource` with the address that refused them, and ask for all the scopes that are named. */
export const resourceMetadata = (issuer: string, resource: string, scopes: string[]): ResourceMetadata => ({
  resource,
  authorization_servers: [issuer],
  scopes_supported: scopes,
  bearer_methods_supported: ["header"],
});
