/** Settings of the driver docker. */
import { z } from "zod";

export const dockerSettings = {
  docker_host: {
    env: "DOCKER_HOST",
    schema: z.string().min(1).optional(),
    about:
      "For driver docker: where that Docker listens (unix:///PATH or tcp://ADDRESS:PORT); absent = its usual socket.",
  },
  docker_image: {
    env: "BERTH_DOCKER_IMAGE",
    schema: z.string().min(1).optional(),
    about: "For driver docker: an image of that Docker in place of the base image that Berth makes from this machine.",
  },
  docker_runtime: {
    env: "BERTH_DOCKER_RUNTIME",
    schema: z.string().min(1).optional(),
    about:
      "For driver docker: the runtime of its containers, such as runsc (gVisor); absent = that Docker's own choice.",
  },
} as const;
