/** Where a Docker Engine listens, from the text of DOCKER_HOST. */

export interface DockerHost {
  /** As the operator wrote it, for messages. */
  text: string;
  origin: string;
  /** Absent for an engine that listens on a TCP port. */
  socketPath?: string;
}

export const DOCKER_HOST_DEFAULT = "unix:///var/run/docker.sock";

/** Throws a sentence about an address that this driver cannot use. */
export function parseDockerHost(text: string): DockerHost {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url?.protocol === "unix:" && url.pathname.startsWith("/")) {
    return { text, origin: "http://docker", socketPath: decodeURIComponent(url.pathname) };
  }
  if ((url?.protocol === "tcp:" || url?.protocol === "http:") && url.hostname !== "") {
    return { text, origin: `http://${url.hostname}:${url.port || DOCKER_PORT}` };
  }
  throw new Error(
    `DOCKER_HOST ${JSON.stringify(text)} cannot be used: it must be unix:///PATH or tcp://ADDRESS:PORT, without TLS or ssh.`,
  );
}

const DOCKER_PORT = 2375;
