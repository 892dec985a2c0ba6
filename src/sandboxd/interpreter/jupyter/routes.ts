/** The requests of Jupyter Server's REST API that clients of kernels use. */
import { ApiError } from "../../http/api-error.ts";
import { sendJson } from "../../http/send.ts";
import { readBody, textOf } from "../body.ts";
import { type Call, emptied, type Route } from "../route.ts";
import { allSpecs, specNamed } from "./specs.ts";

/** The Jupyter Server whose requests these are. Clients look at the first number. */
const SERVER_VERSION = "2.0.0";

export const KERNEL_ROUTES: readonly Route[] = [
  ["GET", /^\/api\/?$/, ({ res }) => sendJson(res, 200, { version: SERVER_VERSION })],
  ["GET", /^\/api\/status$/, status],
  ["GET", /^\/api\/kernelspecs$/, ({ res }) => sendJson(res, 200, allSpecs())],
  ["GET", /^\/api\/kernelspecs\/([^/]+)$/, ({ res, id }) => sendJson(res, 200, specNamed(id))],
  [
    "GET",
    /^\/api\/kernels$/,
    ({ kernels, res }) =>
      sendJson(
        res,
        200,
        kernels.list().map(({ model }) => model),
      ),
  ],
  ["POST", /^\/api\/kernels$/, create],
  ["GET", /^\/api\/kernels\/([^/]+)$/, ({ kernels, res, id }) => sendJson(res, 200, kernels.find(id).model)],
  ["DELETE", /^\/api\/kernels\/([^/]+)$/, ({ kernels, res, id }) => emptied(res, () => kernels.remove(id))],
  [
    "POST",
    /^\/api\/kernels\/([^/]+)\/interrupt$/,
    ({ kernels, res, id }) => emptied(res, () => kernels.find(id).interrupt()),
  ],
  ["POST", /^\/api\/kernels\/([^/]+)\/restart$/, restart],
  ["GET", /^\/api\/kernels\/([^/]+)\/channels$/, refuseWithoutUpgrade],
];

async function create({ kernels, req, res }: Call): Promise<void> {
  const body = await readBody(req);
  const { model } = kernels.create(textOf(body, "name"), textOf(body, "path"));
  res.setHeader("Location", `/api/kernels/${model.id}`);
  sendJson(res, 201, model);
}

function restart({ kernels, res, id }: Call): void {
  const kernel = kernels.find(id);
  kernel.restart();
  sendJson(res, 200, kernel.model);
}

function status({ kernels, res }: Call): void {
  const all = kernels.list();
  const times = [kernels.started, ...all.map(({ context }) => context.lastActivity)].map(Number);
  sendJson(res, 200, {
    ...{ started: kernels.started.toISOString(), last_activity: new Date(Math.max(...times)).toISOString() },
    ...{ kernels: all.length, connections: all.reduce((sum, { connections }) => sum + connections, 0) },
  });
}

function refuseWithoutUpgrade(): void {
  throw new ApiError(426, "This address speaks WebSocket; open it with an upgrade request.");
}
