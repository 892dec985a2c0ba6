/** Containers of the node's own for a moment's work, which carry no workload. */
import { createdSchema } from "../engine/answers.ts";
import { type DockerClient, tolerating } from "../engine/docker-client.ts";
import { type Cage, hostConfig } from "./container.ts";
import { LABEL, type Role } from "./record.ts";

export interface HelperOptions {
  client: DockerClient;
  owner: string;
  image: string;
  argv: string[];
  cage: Cage;
}

/** Makes the container, calls `work` with its id, and removes it. It runs only when `work` starts it. */
export async function withHelper<T>(options: HelperOptions, work: (id: string) => Promise<T>): Promise<T> {
  const { client, owner, image, argv, cage } = options;
  const body = {
    Image: image,
    User: "0:0",
    Entrypoint: argv.slice(0, 1),
    Cmd: argv.slice(1),
    Env: [],
    WorkingDir: "/",
    Labels: { [LABEL.node]: owner, [LABEL.role]: "helper" satisfies Role },
    HostConfig: hostConfig(cage),
  };
  const { Id: id } = await client.json(createdSchema, "POST", "/containers/create", { body });
  try {
    return await work(id);
  } finally {
    await removeContainer(client, id);
  }
}

/** Whatever its state, and with the volumes that its image asked for; those with a name stay. */
export const removeContainer = (client: DockerClient, id: string): Promise<void> =>
  tolerating([404], client.text("DELETE", `/containers/${id}`, { query: { force: true, v: true } }));
