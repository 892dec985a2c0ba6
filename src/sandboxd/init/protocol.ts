/** How the daemon and init talk: by exit code and by signal, so that neither needs the other's memory. */

/** The daemon's way of saying "start the newest executable in my place". */
export const EXIT_FOR_UPGRADE = 75;

/** Sent by the daemon once its sockets and doors listen, so that a command finds the platform's door open. */
export const DAEMON_READY_SIGNAL = "SIGUSR2";

/** In the daemon's environment: the pid of the init that restarts it. Absent when the daemon runs by itself. */
export const INIT_PID_VARIABLE = "SANDBOXD_INIT";

/**
 * In the daemon's environment while init hands down the ready descriptor, which it does until one daemon has used it.
 * Without it the number in the configuration is any descriptor of a later daemon, and must not be touched.
 */
export const READY_VARIABLE = "SANDBOXD_READY";

/** Files in the state folder. `upgraded`: the executable of the platform was asked for at least once. */
export const STATE_FILES = { upgraded: "upgraded", upgrades: "upgrades.json" } as const;
