// A small PNG of a picture with few colours, as screenshots are.
import { deflateSync } from "node:zlib";

/** @type {number[]} */
const TABLE = Array.from({ length: 256 }, (_, start) => {
  let code = start;
  for (let bit = 0; bit < 8; bit += 1) code = code & 1 ? 0xedb88320 ^ (code >>> 1) : code >>> 1;
  return code >>> 0;
});

/** @param {Uint8Array} bytes */
function checksum(bytes) {
  let code = 0xffffffff;
  for (const byte of bytes) code = (TABLE[(code ^ byte) & 255] ?? 0) ^ (code >>> 8);
  return (code ^ 0xffffffff) >>> 0;
}

/** @param {string} name @param {Uint8Array} content */
function chunk(name, content) {
  const whole = new Uint8Array(content.length + 12);
  const view = new DataView(whole.buffer);
  view.setUint32(0, content.length);
  whole.set(
    [...name].map((letter) => letter.charCodeAt(0)),
    4,
  );
  whole.set(content, 8);
  view.setUint32(content.length + 8, checksum(whole.subarray(4, content.length + 8)));
  return whole;
}

/**
 * The colours that are used most, and for every other one the nearest of them.
 * @param {Uint8Array} points four bytes each
 */
function choose(points) {
  /** @type {Map<number, number>} */
  const counts = new Map();
  const colours = new Uint32Array(points.length / 4);
  for (let at = 0; at < colours.length; at += 1) {
    const colour =
      ((points[at * 4] ?? 0) << 16) | ((points[at * 4 + 1] ?? 0) << 8) | (points[at * 4 + 2] ?? 0);
    colours[at] = colour;
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  const most = [...counts]
    .sort((a, b) => b[1] - a[1] || a[0] - b[0])
    .slice(0, 256)
    .map(([colour]) => colour);
  const far = (/** @type {number} */ a, /** @type {number} */ b) =>
    ((a >> 16) - (b >> 16)) ** 2 +
    (((a >> 8) & 255) - ((b >> 8) & 255)) ** 2 +
    ((a & 255) - (b & 255)) ** 2;
  const places = new Map(most.map((colour, place) => [colour, place]));
  for (const colour of counts.keys()) {
    if (places.has(colour)) continue;
    let nearest = 0;
    for (let place = 1; place < most.length; place += 1) {
      if (far(colour, most[place] ?? 0) < far(colour, most[nearest] ?? 0)) nearest = place;
    }
    places.set(colour, nearest);
  }
  return { colours, most, places };
}

/**
 * @param {number} width @param {number} height @param {Uint8Array} points four bytes each
 * @returns {Uint8Array}
 */
export function encode(width, height, points) {
  const { colours, most, places } = choose(points);
  const rows = new Uint8Array(height * (width + 1));
  for (let at = 0; at < colours.length; at += 1) {
    rows[at + Math.floor(at / width) + 1] = places.get(colours[at] ?? 0) ?? 0;
  }
  const head = new Uint8Array(13);
  const view = new DataView(head.buffer);
  view.setUint32(0, width);
  view.setUint32(4, height);
  // Eight bits for each point, which name one of the colours.
  head.set([8, 3, 0, 0, 0], 8);
  const palette = Uint8Array.from(
    most.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]),
  );
  const parts = [
    Uint8Array.from([137, 80, 78, 71, 13, 10, 26, 10]),
    chunk("IHDR", head),
    chunk("PLTE", palette),
    chunk("IDAT", new Uint8Array(deflateSync(rows, { level: 9 }))),
    chunk("IEND", new Uint8Array()),
  ];
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
