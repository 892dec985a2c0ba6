// Creates a sandbox, runs a command in it, writes and reads a file, and deletes it again.
const { BL_API_URL = "http://127.0.0.1:8080/v0", BL_WORKSPACE = "main", BL_API_KEY } = process.env;
if (!BL_API_KEY) {
  console.error(
    "Set BL_API_KEY to an API key of the platform (and BL_API_URL, BL_WORKSPACE if they are not the usual).",
  );
  process.exit(2);
}
const name = `quickstart-${Date.now().toString(36)}`;

const sandbox = await call(`${BL_API_URL}/sandboxes`, "POST", { metadata: { name }, spec: {} });
console.log(`sandbox ${sandbox.metadata.name} is ${sandbox.status} at ${sandbox.metadata.url}`);
try {
  const { url } = sandbox.metadata;
  const done = await call(`${url}/process`, "POST", {
    command: "echo hello from $(uname -s)",
    waitForCompletion: true,
  });
  console.log(`the command said: ${done.stdout.trim()}`);
  await call(`${url}/filesystem/%2Ftmp%2Fnote.txt`, "PUT", { content: "remember me" });
  const file = await call(`${url}/filesystem/%2Ftmp%2Fnote.txt`, "GET");
  console.log(`the file holds: ${file.content}`);
} finally {
  await call(`${BL_API_URL}/sandboxes/${name}`, "DELETE");
  console.log("deleted");
}

async function call(url, method, body) {
  const response = await fetch(url, {
    method,
    headers: {
      "x-service-authorization": `Bearer ${BL_API_KEY}`,
      "x-service-workspace": BL_WORKSPACE,
      ...(body ? { "content-type": "application/json" } : {}),
    },
    ...(body ? { body: JSON.stringify(body) } : {}),
  }).catch((error) => {
    throw new Error(`${method} ${url} failed: ${error.cause?.message ?? error.message}`);
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${url} answered ${response.status}: ${text}`);
  return text ? JSON.parse(text) : null;
}
