/** The metadata (RFC 9728) from which a refused client learns which server issues credentials. */
export const RESOURCE_METADATA = "/.well-known/oauth-protected-resource";

export interface ResourceMetadata {
  resource: string;
  authorization_servers: string[];
  scopes_supported: string[];
  bearer_methods_supported: string[];
}

/** Clients compare `resource` with the address that refused them, and request all the scopes listed. */
export const resourceMetadata = (issuer: string, resource: string, scopes: string[]): ResourceMetadata => ({
  resource,
  authorization_servers: [issuer],
  scopes_supported: scopes,
  bearer_methods_supported: ["header"],
});
