/** 1 to 256 printable ASCII characters, because the id is sent in a header; `.` and `..` are no part of a path. */
export const THREAD_ID = /^(?!\.{1,2}$)[\x20-\x7e]{1,256}$/;
