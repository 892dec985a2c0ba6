// The platform as this agent sees it: who it is there, and what it remembers of a conversation.
const { BL_API_URL, BL_NAME, BL_API_KEY, BL_CLIENT_CREDENTIALS } = process.env;
let token = { text: "", until: 0 };

/** Headers that say who is asking: the key that was given, or else the agent itself. */
export async function credentials() {
  if (BL_API_KEY) return { "x-service-authorization": `Bearer ${BL_API_KEY}` };
  if (!BL_CLIENT_CREDENTIALS) return {};
  if (token.until < Date.now()) {
    const { access_token, expires_in } = await call("/oauth/token", {
      method: "POST",
      headers: {
        authorization: `Basic ${BL_CLIENT_CREDENTIALS}`,
        "content-type": "application/x-www-form-urlencoded",
      },
      body: "grant_type=client_credentials",
    });
    token = { text: access_token, until: Date.now() + (expires_in - 60) * 1000 };
  }
  return { "x-service-authorization": `Bearer ${token.text}` };
}

/** What was said in this thread before; nothing without a thread, without a platform, or before the first deployment. */
export async function recall(thread) {
  if (!thread || !BL_API_URL) return [];
  return (await call(pathOf(thread), { headers: await credentials() }))?.messages ?? [];
}

export async function remember(thread, messages) {
  if (!thread || !BL_API_URL) return;
  await call(`${pathOf(thread)}/messages`, {
    method: "POST",
    headers: { ...(await credentials()), "content-type": "application/json" },
    body: JSON.stringify({ messages }),
  });
}

const pathOf = (thread) => `/agents/${BL_NAME}/threads/${encodeURIComponent(thread)}`;

async function call(path, init) {
  const answer = await fetch(`${BL_API_URL}${path}`, init);
  // `berth dev` runs an agent that the platform does not know until it is deployed.
  if (answer.status === 404) return null;
  if (!answer.ok) throw new Error(`The platform answered ${answer.status}: ${await answer.text()}`);
  return answer.json();
}
