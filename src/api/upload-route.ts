/** Where archives arrive: a stream of any type, without credentials, for the address itself is the permission. */
import type { FastifyInstance } from "fastify";
import { uploadsOf } from "../kinds/behaviour.ts";
import { refuseOnFullDisk } from "../kinds/new-work.ts";
import type { Platform } from "../kinds/port.ts";
import { receiveUpload } from "../kinds/uploads.ts";

export function addUploadRoute(api: FastifyInstance, deps: Platform): void {
  api.register(async (scope) => {
    // The body is left in the request, to be streamed to a file.
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", (_request, _payload, done) => done(null));
    scope.put<{ Params: { token: string } }>(
      "/uploads/:token",
      { config: { readsStream: true } },
      async (request, reply) => {
        refuseOnFullDisk(deps.here);
        await receiveUpload(request.params.token, request.raw, uploadsOf, deps);
        return reply.code(200).send({ status: "uploaded" });
      },
    );
  });
}
