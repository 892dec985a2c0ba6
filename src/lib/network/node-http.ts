/**
 * Node's HTTP module, without what hangs on it. An `import` of a built-in module reads everything that it exports, and
 * one of the exports of this one loads all of Node's `fetch`: some megabytes that a server never uses.
 */
export const { createServer, IncomingMessage, request, ServerResponse, STATUS_CODES } =
  process.getBuiltinModule("node:http");
export type IncomingMessage = InstanceType<typeof IncomingMessage>;
export type ServerResponse = InstanceType<typeof ServerResponse>;
