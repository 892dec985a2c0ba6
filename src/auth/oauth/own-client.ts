/**
 * How pages of the platform have a person sign in: as a client of the platform's own authorization server that asks for
 * no right and gets no token (`response_type=none`). The person comes back with a session in the browser.
 */
import { ROUTES } from "./routes.ts";

/** Where people come back to; `state` says which page they wanted. */
export const ARRIVED = "/oauth/arrived";

export const ownClientId = (brand: string): string => `${brand}-console`;

export const ownClient = (brand: string, pagesUrl: string): Record<string, unknown> => ({
  client_id: ownClientId(brand),
  client_name: "your account",
  token_endpoint_auth_method: "none",
  grant_types: [],
  response_types: ["none"],
  redirect_uris: [`${pagesUrl}${ARRIVED}`],
});

export interface WantedSignIn {
  /** The page to come back to, as a path of the platform. */
  page: string;
  /** Whom the page is for. */
  email?: string;
}

/** An address on the host of the pages. */
export const signInPath = (brand: string, pagesUrl: string, { page, email }: WantedSignIn): string =>
  `${ROUTES.authorization}?${new URLSearchParams({
    client_id: ownClientId(brand),
    response_type: "none",
    redirect_uri: `${pagesUrl}${ARRIVED}`,
    state: page,
    // Somebody else may be signed in.
    ...(email === undefined ? {} : { login_hint: email, prompt: "login" }),
  })}`;

/** Pages that people sign in for. Anybody can write `state`, so any other address is none. */
const PAGES = /^\/oauth\/(account(\/password)?|link\/[\w-]{43})$/;

export const arrivalPath = (state: string | null): string =>
  state !== null && PAGES.test(state) ? state : "/oauth/account";
