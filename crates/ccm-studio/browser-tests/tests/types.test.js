// Every control of the form, to the text and back, for every type and every
// property of the table: a new type is tested without a new test.
import assert from "node:assert/strict";
import { after } from "node:test";
import { checked, choose, studioTest, text } from "../lib/check.js";
import { closeBrowser } from "../lib/studio.js";

/** @typedef {import("playwright-core").Page} Page */

after(closeBrowser);

const TYPES = [
  "apply",
  "archive",
  "edit",
  "exec",
  "file",
  "group",
  "package",
  "scaffold",
  "service",
  "user",
];

/** @param {Page} page @returns {Promise<Type[]>} */
const table = (page) =>
  page.evaluate(
    async () => (await import(/** @type {any} */ ("/core/store.js"))).types.value.types,
  );

/** What the engine reads of a property. @param {Page} page @param {string} name */
const read = (page, name) =>
  page.evaluate(async (property) => {
    const { post } = await import(/** @type {any} */ ("/core/api.js"));
    const { current } = await import(/** @type {any} */ ("/core/store.js"));
    const form = await post("form", { path: "m.yaml", text: current.value.text(), resource: 2 });
    const found = form.properties[property];
    return found?.hidden ? "hidden" : found?.own;
  }, name);

/**
 * Waits until the engine reads a value.
 * @param {Page} page
 * @param {string} name
 * @param {unknown} wanted
 */
async function reads(page, name, wanted) {
  const until = Date.now() + 20_000;
  let got;
  while (Date.now() < until) {
    got = await read(page, name);
    if (JSON.stringify(got) === JSON.stringify(wanted)) return;
    await page.waitForFunction(
      () => new Promise((resolve) => requestAnimationFrame(() => resolve(true))),
    );
  }
  assert.deepEqual(got, wanted, name);
}

/** A value for a text, by its format. @param {Field} field */
function sample(field) {
  const values = /** @type {Record<string, string>} */ ({
    mode: "0750",
    duration: "1m30s",
    url: "https://example.net/a.tgz",
    path: "/tmp/x",
    command: "/bin/true a b",
    expression: "true",
    user: "nobody",
    group: "nogroup",
  });
  return values[field.format ?? ""] ?? "some text";
}

/**
 * Sets a property by its control, and says what it then must be.
 * @param {Page} page
 * @param {Type} type
 * @param {Field} field
 * @returns {Promise<unknown>}
 */
async function set(page, type, field) {
  const row = page.locator(`[data-field="${field.name}"]`);
  const words = field.name === "ensure" ? type.ensure.words : field.words;
  const fill = async (
    /** @type {import("playwright-core").Locator} */ input,
    /** @type {string} */ value,
  ) => {
    await input.fill(value);
    // In a text of several lines, Enter is one more of them.
    if ((await input.getAttribute("data-lines")) === "several") await input.blur();
    else await input.press("Enter");
  };
  if (field.shape === "boolean") {
    await row.getByRole("radio", { name: "true" }).click();
    return true;
  }
  if (field.shape === "integer") {
    await fill(row.locator(`#f-${field.name}`), "3");
    return 3;
  }
  if (field.shape === "text" && words && words.length <= 4) {
    const word = words.find((one) => one !== type.ensure.default) ?? words[0] ?? "";
    await row.getByRole("radio", { name: word, exact: true }).click();
    return word;
  }
  if (field.shape === "text" && words) {
    await row.locator("select").selectOption(words[0] ?? "");
    return words[0];
  }
  if (field.shape === "text" || field.shape === "reference") {
    const value = field.shape === "reference" ? "exec#first" : sample(field);
    await fill(row.locator(`#f-${field.name}`), value);
    return field.secret ? "hidden" : value;
  }
  if (field.shape === "list" && field.items?.shape === "reference") {
    await row.getByRole("button", { name: "Add" }).click();
    await row.getByRole("option", { name: "exec#first" }).click();
    return ["exec#first"];
  }
  if (field.shape === "list" && field.items?.shape === "struct") {
    await row
      .getByRole("button", { name: `Add to ${field.name}` })
      .last()
      .click();
    const part = /** @type {Field} */ (
      field.items.fields?.find((/** @type {Field} */ one) => one.shape === "text" && !one.words)
    );
    await fill(row.locator(`#f-${field.name}-0-${part.name}`), "some text");
    return [{ [part.name]: "some text" }];
  }
  if (field.shape === "list") {
    await row.getByRole("button", { name: "Add" }).click();
    if (field.items?.shape === "integer") {
      await fill(row.locator(`#f-${field.name}-0`), "3");
      return [3];
    }
    if (field.items?.shape === "texts") {
      await fill(row.locator(`#f-${field.name}-0-new`), "key");
      await fill(row.locator(`#f-${field.name}-0-v-key`), "text");
      return [{ key: "text" }];
    }
    const value = field.items?.shape === "text" ? sample(field) : "one";
    await fill(row.locator(`#f-${field.name}-0`), value);
    return field.secret ? "hidden" : [value];
  }
  if (field.shape === "texts" || field.shape === "data" || field.shape === "rules") {
    if (field.secret) {
      await row.getByRole("textbox", { name: `Key of ${field.name}` }).fill("key");
      await fill(row.getByLabel(`Value for ${field.name}`), "text");
      return "hidden";
    }
    const key = row.locator(`#f-${field.name}-new`);
    await key.fill("key");
    await key.press("Enter");
    await fill(row.locator(`#f-${field.name}-v-key`), "text");
    return { key: "text" };
  }
  if (field.shape === "struct") {
    const part = /** @type {Field} */ (
      field.fields?.find((one) => one.shape === "text" && !one.words)
    );
    await fill(row.locator(`#f-${field.name}-${part.name}`), "true");
    return { [part.name]: "true" };
  }
  return assert.fail(`no control is known for the shape ${field.shape} of ${field.name}`);
}

for (const name of TYPES) {
  const manifest =
    `ccm:\n  resources:\n    - exec:\n        - first: {command: /bin/true}\n` +
    `    - ${name}:\n        - /tmp/under-test: {}\n`;
  studioTest(
    `each property of ${name} by its control`,
    { "m.yaml": manifest },
    async ({ page }) => {
      await choose(page, `${name}#/tmp/under-test`);
      const all = await table(page);
      assert.deepEqual(
        all.map((one) => one.name).sort(),
        TYPES,
        "a new type belongs into TYPES of this test",
      );
      const type = /** @type {Type} */ (all.find((one) => one.name === name));
      // An `ensure` with one word is that word, set or not.
      const single = type.ensure.words?.length === 1;
      const fields = type.fields.filter(
        (one) => one.name !== "name" && !(single && one.name === "ensure"),
      );
      for (const field of fields) {
        // What excludes another one is chosen first.
        const choice = page
          .locator(".f.choice")
          .getByRole("radio", { name: field.name, exact: true });
        if ((await choice.count()) > 0) await choice.click();
        const folded = page.locator("details.more", {
          has: page.locator(`[data-field="${field.name}"]`),
        });
        if ((await folded.count()) > 0) {
          await folded.evaluate((details) => details.setAttribute("open", ""));
        }
        await reads(page, field.name, await set(page, type, field));
      }
      // And back: undone, the text is what it was, byte by byte.
      await page.locator("#outline").focus();
      for (let step = 0; step < 4 * fields.length && (await text(page)) !== manifest; step += 1) {
        await page.keyboard.press("ControlOrMeta+z");
      }
      assert.equal(await text(page), manifest, "everything undone");
      await checked(page);
      for (const field of fields) await reads(page, field.name, undefined);
    },
  );
}
