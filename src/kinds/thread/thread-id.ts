/** 1 to 256 printable ASCII characters, because the id is sent in a header. */
export const THREAD_ID = /^[\x20-\x7e]{1,256}$/;
