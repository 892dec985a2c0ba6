/** The answer to the request that `early.ts` has made for the first token; it is used once. */
declare global {
  interface Window {
    earlyToken?: Promise<Response | null>;
  }
}

export async function earlyToken(): Promise<Response | null> {
  const asked = window.earlyToken;
  delete window.earlyToken;
  return (await asked) ?? null;
}
