/** The parts of oidc-provider that the platform uses; the package brings no types of its own. */
declare module "oidc-provider" {
  import type { IncomingMessage, ServerResponse } from "node:http";

  export interface Context {
    req: IncomingMessage;
    ip: string;
    headers: IncomingMessage["headers"];
    type: string;
    body: unknown;
    status: number;
    set(name: string, value: string): void;
    remove(name: string): void;
    response: { get(name: string): string };
    oidc: {
      provider: Provider;
      client?: Client;
      session?: { accountId?: string; state?: { secret?: string } };
      route?: string;
      body?: unknown;
      params?: Record<string, unknown>;
      result?: { consent?: { grantId?: string } };
    };
  }

  export interface Client {
    clientId: string;
    clientName?: string;
    grantTypeAllowed(grantType: string): boolean;
    metadata(): Record<string, unknown>;
  }

  export interface Token {
    kind: string;
    clientId: string;
    accountId?: string;
    grantId?: string;
    scope?: string;
  }

  export interface InteractionDetails {
    uid: string;
    prompt: { name: string; details: { missingResourceScopes?: Record<string, string[]> } };
    params: Record<string, string | undefined>;
    session?: { accountId: string };
  }

  export interface Session {
    id: string;
    uid: string;
    accountId?: string;
    loginTs?: number;
    authorizations?: object;
    state?: object;
    loginAccount(about: { accountId: string }): void;
    save(ttlSeconds: number): Promise<string>;
    persist(): Promise<string>;
    destroy(): Promise<void>;
  }

  export interface Grant {
    addOIDCScope(scope: string): void;
    addResourceScope(resource: string, scope: string): void;
    save(): Promise<string>;
  }

  export default class Provider {
    constructor(issuer: string, configuration: Record<string, unknown>);
    proxy: boolean;
    use(middleware: (context: Context, next: () => Promise<void>) => Promise<void>): void;
    Client: { prototype: object; find(id: string): Promise<Client | undefined> };
    Grant: {
      new (about: { accountId: string; clientId: string }): Grant;
      find(id: string): Promise<Grant | undefined>;
    };
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<InteractionDetails>;
    /** Stores the result of a person's step; returns the address to continue at. */
    interactionResult(
      request: IncomingMessage,
      response: ServerResponse,
      result: Record<string, unknown>,
    ): Promise<string>;
    interactionFinished(
      request: IncomingMessage,
      response: ServerResponse,
      result: Record<string, unknown>,
    ): Promise<void>;
    createContext(
      request: IncomingMessage,
      response: ServerResponse,
    ): { secure: boolean; cookies: { set(name: string, value: string, options: object): void } };
    Session: { new (): Session; get(context: object): Promise<Session> };
    cookieName(type: "session"): string;
    callback(): (request: IncomingMessage, response: ServerResponse) => Promise<void>;
    on(event: string, listener: (...args: unknown[]) => void): this;
  }

  export const errors: Record<string, new (description?: string) => Error>;
}
