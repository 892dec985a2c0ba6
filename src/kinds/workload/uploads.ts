/** The code of a new revision is uploaded as an archive. */
import type { Uploads } from "../port.ts";
import { stateOf } from "./deploy-state.ts";

export const codeUploads: Uploads = {
  awaiting: { status: "UPLOADING", event: { type: "uploading", message: "Waits for the archive with its code." } },
  nameOf: (_call, current) => String((current?.generation ?? 0) + 1),
  async take({ digest }, revision, { clock }) {
    return {
      change(current) {
        const state = stateOf(current);
        const revisions = { ...state.revisions, [revision]: { source: digest, uploadedAt: clock.now() } };
        return {
          state: { ...state, revisions },
          status: "BUILDING",
          event: { type: "uploaded", message: "The archive has arrived.", revision },
        };
      },
    };
  },
};
