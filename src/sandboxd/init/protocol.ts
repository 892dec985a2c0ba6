/** How the daemon and init talk: by exit code and by signal, so that neither needs the other's memory. */

/** Exit code by which the daemon asks init to start the newest executable in its place. */
export const EXIT_FOR_UPGRADE = 75;

/** Sent by the daemon once its sockets and doors listen, so that a command finds the platform's door open. */
export const DAEMON_READY_SIGNAL = "SIGUSR2";

/** Sent by the daemon when the end time has moved, so that init need not look for it all the time. */
export const END_MOVED_SIGNAL = "SIGHUP";

/** In the daemon's environment: the pid of the init that restarts it. Absent when the daemon runs by itself. */
export const INIT_PID_VARIABLE = "SANDBOXD_INIT";

/**
 * Set in the daemon's environment while init passes the ready descriptor on, until one daemon has used it. Without this
 * variable the number in the configuration may be any other descriptor of the daemon, which must not touch it.
 */
export const READY_VARIABLE = "SANDBOXD_READY";

/**
 * Files in the state folder. `upgraded` exists once the platform's executable has been asked for; `grace` has the
 * milliseconds that the platform gives everything to end.
 */
export const STATE_FILES = { upgraded: "upgraded", upgrades: "upgrades.json", grace: "grace" } as const;
