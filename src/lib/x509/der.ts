/** Writes ASN.1 in the distinguished encoding (DER), as far as certificates need it. */

const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  objectId: 0x06,
  utf8: 0x0c,
  sequence: 0x30,
  set: 0x31,
  utcTime: 0x17,
  generalizedTime: 0x18,
} as const;

export function tagged(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(contents);
  const length = body.length < 0x80 ? [body.length] : longLength(body.length);
  return Buffer.concat([Buffer.from([tag, ...length]), body]);
}

function longLength(length: number): number[] {
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return [0x80 | bytes.length, ...bytes];
}

export const sequence = (...items: readonly Uint8Array[]): Buffer => tagged(TAG.sequence, ...items);
export const set = (...items: readonly Uint8Array[]): Buffer => tagged(TAG.set, ...items);
export const utf8 = (text: string): Buffer => tagged(TAG.utf8, Buffer.from(text));
export const octets = (bytes: Uint8Array): Buffer => tagged(TAG.octetString, bytes);
export const TRUE: Buffer = tagged(TAG.boolean, Buffer.from([0xff]));

/** `unused`: bits at the end that do not count. */
export const bits = (bytes: Uint8Array, unused = 0): Buffer => tagged(TAG.bitString, Buffer.from([unused]), bytes);

/** Of bytes that are a positive number. */
export function integer(bytes: Uint8Array): Buffer {
  const start = bytes.findIndex((byte) => byte !== 0);
  const plain = start < 0 ? Uint8Array.of(0) : bytes.subarray(start);
  return tagged(TAG.integer, Buffer.from((plain[0] ?? 0) & 0x80 ? [0] : []), plain);
}

export function objectId(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  const bytes = [first * 40 + second, ...rest].flatMap((arc) => {
    const groups = [arc & 0x7f];
    for (let left = Math.floor(arc / 128); left > 0; left = Math.floor(left / 128))
      groups.unshift((left & 0x7f) | 0x80);
    return groups;
  });
  return tagged(TAG.objectId, Buffer.from(bytes));
}

/** RFC 5280: two digits of the year up to 2049, four from then on. */
export function time(ms: number): Buffer {
  const date = new Date(ms);
  const stamp = date.toISOString().replace(/[-:T]|\.\d+/g, "");
  if (date.getUTCFullYear() < 2050) return tagged(TAG.utcTime, Buffer.from(stamp.slice(2)));
  return tagged(TAG.generalizedTime, Buffer.from(stamp));
}
