/** What people do in a browser while they sign in. */
import { createHash } from "node:crypto";
import type { Page } from "playwright-core";
import { hashPassword } from "../../src/auth/passwords.ts";
import { makeUser } from "../identities.ts";
import type { TestPlatform } from "../platform.ts";

export const PASSWORD = "correct horse battery";

export interface TestPerson {
  sub: string;
  email: string;
}

/** An admin of the account with a password. */
export async function makeAdmin({ app: { store } }: TestPlatform): Promise<TestPerson> {
  const [account] = await store.people.listAccountsAcrossUsers();
  const { sub } = await makeUser(store, account?.id ?? "", "admin", { main: "admin" });
  await store.people.setPassword(sub, await hashPassword(PASSWORD));
  return { sub, email: (await store.people.getUser(sub))?.email ?? "" };
}

export const VERIFIER = "a-proof-key-that-only-this-test-knows-0123456789";

/** Where a program sends people to ask for a code. */
export const authorizeUrl = (base: string, more: Record<string, string> = {}): string =>
  `${base}/oauth/authorize?${new URLSearchParams({
    client_id: "service",
    response_type: "code",
    redirect_uri: "http://127.0.0.1:9/callback",
    state: "s1",
    code_challenge: createHash("sha256").update(VERIFIER).digest("base64url"),
    code_challenge_method: "S256",
    ...more,
  })}`;

export async function fillSignIn(page: Page, email: string, password = PASSWORD): Promise<void> {
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
}

/** Leaves the browser signed in, at a question that it has not answered. */
export async function signInAt(page: Page, base: string, email: string): Promise<void> {
  await page.goto(authorizeUrl(base));
  await fillSignIn(page, email);
  await page.getByRole("heading", { name: "Allow access?" }).waitFor();
}
