/** Isolation grades, which the settings, the API and the drivers name alike. */

/**
 * How far a hostile workload is from the machine, strongest first:
 *   vm-like    as mapped, and a guest kernel of its own (gVisor) answers the system calls of the workload
 *   mapped     root inside is an unprivileged user range outside; namespaces, seccomp filter, cgroup limits
 *   contained  the same, but root inside is uid 0 outside, without any capability, or with those few of a container
 *   user       namespaces made by an unprivileged user: everything inside is that user
 *   none       a plain process of the server's own user
 */
export const GRADES = ["vm-like", "mapped", "contained", "user", "none"] as const;
export type Grade = (typeof GRADES)[number];

/** Whether a grade is at least as strong as another. */
export const isAtLeast = (grade: Grade, least: Grade): boolean => GRADES.indexOf(grade) <= GRADES.indexOf(least);
