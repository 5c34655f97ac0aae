// Screenshots that are compared with kept ones.
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { encode } from "./png.js";
import { browser } from "./studio.js";

/** @typedef {import("playwright-core").Page} Page */

const kept = new URL("../screens/", import.meta.url).pathname;
const results = new URL("../results/", import.meta.url).pathname;

/** Whether this run writes the pictures anew instead of comparing them. */
export const rewrites = process.env["CCM_SCREENS"] === "write";

/**
 * How much of a picture may differ: parts of 8 by 8 points whose mean colour is
 * off by more than `by` of 255. Other fonts move words, but not panes.
 */
const TOLERANCE = { same: { by: 16, share: 0.01 }, other: { by: 48, share: 0.2 } };

/**
 * The width of a text in the fonts of the page, which tells one font from another.
 * @param {Page} page
 */
const measure = (page) =>
  page.evaluate(() => {
    const pen = /** @type {CanvasRenderingContext2D} */ (
      document.createElement("canvas").getContext("2d")
    );
    const style = getComputedStyle(document.documentElement);
    return ["--sans", "--mono"].map((name) => {
      pen.font = `100px ${style.getPropertyValue(name)}`;
      return Math.round(pen.measureText("Resources in run order, 0123456789").width);
    });
  });

/**
 * Makes what differs from run to run the same: times, durations, names of the machine.
 * @param {Page} page
 */
async function still(page) {
  await page.evaluate(async () => {
    const { studio } = await import(/** @type {any} */ ("/core/store.js"));
    studio.value = {
      ...studio.value,
      host: "web-03",
      user: "root",
      directory: "/etc/ccm/site",
      version: "0.0.0",
    };
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    /** @type {HTMLElement | null} */ (document.activeElement)?.blur();
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
      const node = /** @type {Text} */ (walk.currentNode);
      const text = node.data
        .replace(/\d\d:\d\d, (just now|\d+ \w+ ago)/g, "14:02, just now")
        .replace(/\b\d+(\.\d+)? (ms|s)\b/g, "3 ms");
      if (text !== node.data) node.data = text;
    }
  });
}

/** What a page shows, as a picture. @param {Page} page @returns {Promise<string>} in base64 */
export const photograph = async (page) =>
  (await page.screenshot({ animations: "disabled" })).toString("base64");

/**
 * Writes what a page shows.
 * @param {Page} page @param {string} file
 */
export async function keep(page, file) {
  await still(page);
  const { width, height, points } = await (
    await table()
  ).evaluate(
    async (data) => {
      const image = new Image();
      image.src = `data:image/png;base64,${data}`;
      await image.decode();
      const pen = /** @type {OffscreenCanvasRenderingContext2D} */ (
        new OffscreenCanvas(image.width, image.height).getContext("2d")
      );
      pen.drawImage(image, 0, 0);
      const { data: bytes } = pen.getImageData(0, 0, image.width, image.height);
      const blob = new Blob([bytes]);
      const text = await new Promise((resolve) => {
        const reader = new FileReader();
        reader.onload = () => resolve(String(reader.result).replace(/^.*,/, ""));
        reader.readAsDataURL(blob);
      });
      return { width: image.width, height: image.height, points: String(text) };
    },
    await photograph(page),
  );
  const made = encode(width, height, new Uint8Array(Buffer.from(points, "base64")));
  assert.ok(made.length < 150_000, `${file} has ${made.length} bytes`);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, made);
}

/**
 * Compares what a page shows with the kept picture of this name.
 * @param {Page} page @param {string} name
 */
export async function compare(page, name) {
  const file = join(kept, `${name}.png`);
  const fonts = await measure(page);
  if (rewrites) {
    await keep(page, file);
    await writeFile(join(kept, "fonts.json"), `${JSON.stringify(fonts)}\n`);
    return;
  }
  await still(page);
  const now = await photograph(page);
  const same = JSON.stringify(fonts) === (await readFile(join(kept, "fonts.json"), "utf8")).trim();
  const { by, share } = same ? TOLERANCE.same : TOLERANCE.other;
  const differs = await difference(now, (await readFile(file)).toString("base64"), by);
  if (differs <= share) return;
  await keep(page, join(results, `screen-${name}.png`));
  assert.fail(
    `${name} looks different in ${(differs * 100).toFixed(1)} % of its area; ` +
      `see results/screen-${name}.png, and keep it with CCM_SCREENS=write`,
  );
}

/** @type {Promise<Page> | undefined} */
let desk;

/** An empty page, which can read pictures. */
function table() {
  desk ??= browser().then((running) => running.newPage());
  return desk;
}

/**
 * The share of two pictures that differs.
 * @param {string} one
 * @param {string} other both in base64
 * @param {number} by
 */
export async function difference(one, other, by) {
  return (await table()).evaluate(
    async ([first, second, most]) => {
      const SIDE = 8;
      const read = async (/** @type {any} */ data) => {
        const image = new Image();
        image.src = `data:image/png;base64,${data}`;
        await image.decode();
        const canvas = new OffscreenCanvas(image.width, image.height);
        const pen = /** @type {OffscreenCanvasRenderingContext2D} */ (canvas.getContext("2d"));
        pen.drawImage(image, 0, 0);
        return pen.getImageData(0, 0, image.width, image.height);
      };
      const [a, b] = [await read(first), await read(second)];
      if (a.width !== b.width || a.height !== b.height) return 1;
      let [parts, differ] = [0, 0];
      for (let top = 0; top < a.height; top += SIDE) {
        for (let left = 0; left < a.width; left += SIDE) {
          const sums = [0, 0, 0];
          let count = 0;
          for (let y = top; y < Math.min(top + SIDE, a.height); y += 1) {
            for (let x = left; x < Math.min(left + SIDE, a.width); x += 1) {
              const at = (y * a.width + x) * 4;
              for (let colour = 0; colour < 3; colour += 1) {
                sums[colour] =
                  (sums[colour] ?? 0) + (a.data[at + colour] ?? 0) - (b.data[at + colour] ?? 0);
              }
              count += 1;
            }
          }
          parts += 1;
          if (sums.some((sum) => Math.abs(sum / count) > Number(most))) differ += 1;
        }
      }
      return differ / parts;
    },
    [one, other, by],
  );
}
