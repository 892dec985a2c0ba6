// What the protocol asks of a server of tools, over streamable HTTP without sessions: one JSON answer to each message.
// Clients of 2026-07-28 say with every request which version they speak and what it is about, in the body and in
// headers, which have to agree; those before begin with `initialize`.
const STATELESS = "2026-07-28";
const HANDSHAKE = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const VERSIONS = [STATELESS, ...HANDSHAKE];
const META = "io.modelcontextprotocol/";
const CACHE = { ttlMs: 0, cacheScope: "private" };

class Refusal extends Error {
  constructor(code, message, status = 200, data = undefined) {
    super(message);
    Object.assign(this, { code, status, data });
  }
}

/** The HTTP status and body for one message; `body` is undefined where there is nothing to say. */
export function answer(server, message, headers) {
  const { id, method, params = {} } = message;
  // Notifications and answers are taken note of, and need no reply.
  if (id === undefined || method === undefined) return { status: 202 };
  try {
    const stateless = versionOf(message, headers) === STATELESS;
    const result = perform(server, method, params, stateless);
    const more = stateless ? { resultType: "complete", _meta: { [`${META}serverInfo`]: server.info } } : {};
    return { status: 200, body: { jsonrpc: "2.0", id, result: { ...more, ...result } } };
  } catch (error) {
    const { code = -32603, status = 200, data, message: why } = error;
    return { status, body: { jsonrpc: "2.0", id, error: { code, message: why, data } } };
  }
}

function perform({ info, tools }, method, params, stateless) {
  const about = { capabilities: { tools: {} }, serverInfo: info };
  const asked = stateless && (method === "initialize" || method === "ping") ? "" : method;
  switch (asked) {
    case "initialize": {
      const { protocolVersion: wanted } = params;
      return { protocolVersion: HANDSHAKE.includes(wanted) ? wanted : HANDSHAKE[0], ...about };
    }
    case "server/discover":
      return { supportedVersions: VERSIONS, ...about, ...CACHE };
    case "ping":
      return {};
    case "tools/list":
      return { tools: Object.entries(tools).map(([name, { run: _run, ...tool }]) => ({ name, ...tool })), ...CACHE };
    case "tools/call":
      return call(tools, params);
    default:
      throw new Refusal(-32601, `There is no method '${method}'.`, 404);
  }
}

function call(tools, { name, arguments: given = {} }) {
  const tool = Object.hasOwn(tools, name) ? tools[name] : undefined;
  if (!tool) throw new Refusal(-32602, `There is no tool '${name}'.`);
  const wrong = Object.entries(tool.inputSchema.properties).find(([key, { type }]) => typeof given[key] !== type);
  if (wrong) return { content: [{ type: "text", text: `${wrong[0]} must be a ${wrong[1].type}.` }], isError: true };
  return { content: [{ type: "text", text: tool.run(given) }] };
}

/** What the request speaks, checked; undefined means one of the older versions. */
function versionOf({ method, params = {} }, headers) {
  const meta = params._meta ?? {};
  const inBody = meta[`${META}protocolVersion`];
  const inHeader = headers["mcp-protocol-version"];
  const version = inBody ?? inHeader;
  if (version === undefined) return undefined;
  if (inBody !== undefined && inHeader !== undefined) mustMatch("MCP-Protocol-Version", inHeader, inBody);
  if (!VERSIONS.includes(version)) {
    const data = { supported: VERSIONS, requested: version };
    throw new Refusal(-32022, `Version ${version} is not supported.`, 400, data);
  }
  if (version !== STATELESS) return version;
  for (const key of ["protocolVersion", "clientCapabilities"])
    if (meta[META + key] === undefined) throw new Refusal(-32602, `_meta needs ${META}${key}.`, 400);
  mustMatch("MCP-Protocol-Version", inHeader, inBody);
  mustMatch("Mcp-Method", headers["mcp-method"], method);
  if (method === "tools/call") mustMatch("Mcp-Name", headers["mcp-name"], params.name);
  return version;
}

function mustMatch(field, said, value) {
  const coded = /^=\?base64\?(.*)\?=$/.exec(said ?? "")?.[1];
  const given = coded === undefined ? said : Buffer.from(coded, "base64").toString();
  if (given !== value) throw new Refusal(-32020, `Header mismatch: ${field} does not match the body.`, 400);
}
