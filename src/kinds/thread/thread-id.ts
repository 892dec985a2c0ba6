/** As it may stand in a header. */
export const THREAD_ID = /^[\x20-\x7e]{1,256}$/;
