/**
 * A program that signs people in, as a client of the authorization server: with a code and a proof key, or from a
 * device.
 *
 *   const { access, refresh } = await program(url).tokens(person);
 */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { Browser, type Page } from "./browser.ts";

export const CALLBACK = "http://127.0.0.1:43210/callback";
export const DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";

export interface Person {
  email: string;
  password: string;
}

export interface TokenAnswer {
  status: number;
  body: Record<string, string>;
}

export interface Tokens {
  access: string;
  refresh: string;
}

export type Program = ReturnType<typeof program>;

/** `origin` is the public address, where it differs from the one to connect to. */
export function program(url: string, origin = url) {
  const browser = (): Browser => new Browser(origin, url);

  const post = async (path: string, fields: object, headers: Record<string, string> = {}): Promise<TokenAnswer> => {
    const response = await fetch(`${url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(fields),
    });
    const text = await response.text();
    return { status: response.status, body: text === "" ? {} : JSON.parse(text) };
  };

  const authorizeUrl = (challenge: string | null, more: Record<string, string> = {}): string =>
    `/oauth/authorize?${new URLSearchParams({
      client_id: "service",
      response_type: "code",
      redirect_uri: CALLBACK,
      state: "s1",
      ...(challenge === null ? {} : { code_challenge: challenge, code_challenge_method: "S256" }),
      ...more,
    })}`;

  const signIn = async (visitor: Browser, page: Page, { email, password }: Person): Promise<Page> => {
    assert.match(page.text, /<h1>Sign in<\/h1>/);
    return visitor.submit(page, { email, password });
  };

  /** Up to the redirect that carries the code. */
  const codeFrom = async (person: Person, challenge: string, more: Record<string, string> = {}): Promise<string> => {
    const visitor = browser();
    const consent = await signIn(visitor, await visitor.visit(authorizeUrl(challenge, more)), person);
    assert.match(consent.text, /Allow access/);
    const back = new URL((await visitor.submit(consent, { step: "allow" })).url);
    assert.equal(back.origin + back.pathname, CALLBACK);
    assert.equal(back.searchParams.get("state"), "s1");
    assert.equal(back.searchParams.get("iss"), origin);
    return back.searchParams.get("code") ?? "";
  };

  const redeem = (code: string, verifier: string, more: object = {}): Promise<TokenAnswer> =>
    post("/oauth/token", {
      grant_type: "authorization_code",
      client_id: "service",
      code,
      redirect_uri: CALLBACK,
      code_verifier: verifier,
      ...more,
    });

  return {
    browser,
    post,
    authorizeUrl,
    signIn,
    codeFrom,
    redeem,
    async tokens(person: Person, scope?: string): Promise<Tokens> {
      const { verifier, challenge } = proof();
      const answer = await redeem(await codeFrom(person, challenge, scope ? { scope } : {}), verifier);
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
      return { access: answer.body.access_token ?? "", refresh: answer.body.refresh_token ?? "" };
    },
    refresh: (token: string): Promise<TokenAnswer> =>
      post("/oauth/token", { grant_type: "refresh_token", refresh_token: token, device_code: "ignored" }),
  };
}

/** A proof key: the verifier stays with the program, the challenge goes with the request. */
export function proof(): { verifier: string; challenge: string } {
  const verifier = randomBytes(32).toString("base64url");
  return { verifier, challenge: createHash("sha256").update(verifier).digest("base64url") };
}
