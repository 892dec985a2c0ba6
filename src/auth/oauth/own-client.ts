/**
 * How the platform's own pages sign a person in: as a client of the platform's authorization server that requests no
 * right and gets no token (`response_type=none`). The person returns with a session in the browser.
 */
import { ROUTES } from "./routes.ts";

/** Where people return to; `state` names the page they wanted. */
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
  /** The page to return to, as a path of the platform. */
  page: string;
  /** Email address of the person that the page is for. */
  email?: string;
}

/** Path of the sign-in on the host of the pages. */
export const signInPath = (brand: string, pagesUrl: string, { page, email }: WantedSignIn): string =>
  `${ROUTES.authorization}?${new URLSearchParams({
    client_id: ownClientId(brand),
    response_type: "none",
    redirect_uri: `${pagesUrl}${ARRIVED}`,
    state: page,
    // Ask for a new sign-in, because another person may be signed in.
    ...(email === undefined ? {} : { login_hint: email, prompt: "login" }),
  })}`;

/** Pages that need a sign-in. Anybody can write `state`, so other addresses are refused. */
const PAGES = /^(\/oauth\/(account(\/password)?|link\/[\w-]{43})|\/console\/arrived)$/;

export const arrivalPath = (state: string | null): string =>
  state !== null && PAGES.test(state) ? state : "/oauth/account";
