/** The parts of oidc-provider that we use; the package brings no types of its own. */
declare module "oidc-provider" {
  import type { IncomingMessage, ServerResponse } from "node:http";

  export interface Context {
    req: IncomingMessage;
    type: string;
    body: unknown;
    status: number;
    set(name: string, value: string): void;
    oidc: {
      provider: Provider;
      client?: Client;
      params?: Record<string, unknown>;
      session?: { accountId?: string; grantIdFor(clientId: string): string | undefined };
      entities: Record<string, Record<string, unknown> | undefined>;
    };
  }

  export interface Client {
    clientId: string;
    clientName?: string;
    applicationType?: string;
    redirectUris?: string[];
    metadata(): Record<string, unknown>;
  }

  export interface Token {
    kind: string;
    clientId: string;
    accountId?: string;
    grantId?: string;
    scope?: string;
  }

  export default class Provider {
    constructor(issuer: string, configuration: Record<string, unknown>);
    proxy: boolean;
    Client: { prototype: object; find(id: string): Promise<Client | undefined> };
    callback(): (request: IncomingMessage, response: ServerResponse) => Promise<void>;
    on(event: string, listener: (...args: unknown[]) => void): this;
  }

  export const errors: Record<string, new (description?: string) => Error>;
}
