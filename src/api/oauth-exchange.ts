/** A request to the authorization server as the routes hand it on. */
import type { FastifyReply, FastifyRequest } from "fastify";
import type Provider from "oidc-provider";
import type { Authenticator } from "../auth/authenticator.ts";
import type { TokenClaims } from "../auth/oauth/access-tokens.ts";
import type { IntrospectionDeps } from "../auth/oauth/introspection.ts";
import type { OauthDeps } from "../auth/oauth/provider.ts";
import type { Origin } from "../auth/oauth/sign-in-audit.ts";

export interface OauthRoutesOptions extends OauthDeps {
  authenticator: Authenticator;
  verifyToken(token: string): Promise<TokenClaims | null>;
  checkDriveToken: IntrospectionDeps["checkDriveToken"];
  /** Writes that one address without credentials may cause in a minute. */
  anonymousPerMinute: number;
}

/** Hands a request over as if it had come to `url` at the issuer's own address. */
export type Pass = (
  request: FastifyRequest,
  reply: FastifyReply,
  url: string,
  form: URLSearchParams | null,
) => Promise<void>;

/** `userCode` is that of a device, when the person came with one. */
export type PagePass = (
  request: FastifyRequest,
  reply: FastifyReply,
  url: string,
  form: URLSearchParams | null,
  userCode: string | null,
) => Promise<void>;

/** Where a request comes from, for the audit log. */
export const originOf = ({ clientAddress, id }: FastifyRequest): Origin => ({ address: clientAddress, requestId: id });

export type CurrentProvider = () => Promise<Provider>;
