/**
 * Node's HTTP module without its lazy exports. An `import` of a built-in module reads all of its exports, and one
 * export of node:http loads Node's `fetch`: some megabytes that a server never uses.
 */
export const { Agent, createServer, IncomingMessage, request, ServerResponse, STATUS_CODES } =
  process.getBuiltinModule("node:http");
export type IncomingMessage = InstanceType<typeof IncomingMessage>;
export type ServerResponse = InstanceType<typeof ServerResponse>;
