/** What an image says about the processes that run from it. The instructions of a stage change it one by one. */
export interface BuildConfig {
  env: Record<string, string>;
  /** Absolute. */
  workDir: string;
  /** `name`, `uid`, `name:group`; empty: root. */
  user: string;
  /** Null: none. */
  entrypoint: string[] | null;
  cmd: string[] | null;
  /** Runs the shell form of RUN, CMD and ENTRYPOINT. */
  shell: string[];
  /** `80/tcp` */
  ports: string[];
  labels: Record<string, string>;
  volumes: string[];
  stopSignal: string | null;
  healthcheck: Healthcheck | null;
}

/** As in the configuration of an image; times in nanoseconds. */
export interface Healthcheck {
  test: string[];
  interval?: number;
  timeout?: number;
  startPeriod?: number;
  startInterval?: number;
  retries?: number;
}

export const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Of `FROM scratch`. */
export const EMPTY_CONFIG: BuildConfig = {
  env: { PATH: DEFAULT_PATH },
  workDir: "/",
  user: "",
  entrypoint: null,
  cmd: null,
  shell: ["/bin/sh", "-c"],
  ports: [],
  labels: {},
  volumes: [],
  stopSignal: null,
  healthcheck: null,
};
