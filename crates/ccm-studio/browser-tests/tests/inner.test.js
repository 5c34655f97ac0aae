// What a manifest comes to beyond its own text: child manifests and templates.
import assert from "node:assert/strict";
import { after } from "node:test";
import { accessible, checked, choose, studioTest } from "../lib/check.js";
import { closeBrowser } from "../lib/studio.js";

/** @typedef {import("playwright-core").Page} Page */

after(closeBrowser);

const CHILD = `ccm:
  resources:
    - exec:
        - reload the child:
            command: /bin/true
            unless: test -e /child-guard
        - second of the child:
            command: /bin/true
            require: ["exec#reload the child"]
            refresh_only: true
`;

const SITE = `ccm:
  resources:
    - file:
        - defaults: {owner: root, group: root, mode: "0644"}
        - /tmp/ccm-studio-test-inner:
            content: "hi\\n"
    - apply:
        - deep/child.yaml: {}
        - later.yaml: {}
`;

const RENDERED = `data:
  names: [one, two]
ccm:
  resources_jet_file: made.jet
`;

const TEMPLATE = `[[ range _, name := data.names ]]- exec:
    - [[ name ]]:
        command: /bin/true
        onlyif: test -e /made-[[ name ]]
[[ end ]]`;

const FILES = {
  "site.yaml": SITE,
  "deep/child.yaml": CHILD,
  "by-template.yaml": RENDERED,
  "made.jet": TEMPLATE,
};

/** @param {Page} page @param {string} file */
async function openFile(page, file) {
  await page.evaluate((name) => (location.hash = `#/design?file=${name}`), file);
  await page.locator(".topbar, header").getByText(file).first().waitFor();
  await page.waitForFunction(
    async (name) =>
      (await import(/** @type {any} */ ("/core/store.js"))).current.value?.path.value === name,
    file,
  );
  await checked(page);
}

studioTest(
  "before a plan, the guards of child manifests and templates are listed too",
  FILES,
  async ({ page }) => {
    await openFile(page, "site.yaml");
    await page.keyboard.press("ControlOrMeta+Enter");
    let dialog = page.getByRole("dialog", { name: "This plan runs commands" });
    await dialog.getByText("test -e /child-guard").waitFor();
    await dialog.getByText("in deep/child.yaml").waitFor();
    await dialog.getByText(/later\.yaml does not exist yet/).waitFor();
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await openFile(page, "by-template.yaml");
    await page.keyboard.press("ControlOrMeta+Enter");
    dialog = page.getByRole("dialog", { name: "This plan runs commands" });
    await dialog.getByText("test -e /made-one").waitFor();
    await dialog.getByText("test -e /made-two").waitFor();
    await dialog.getByRole("button", { name: "Run them and plan" }).click();
    await page.getByRole("heading", { name: "finished", level: 2 }).waitFor();
    // What was agreed to is not asked again.
    await page.keyboard.press("ControlOrMeta+Enter");
    await page.waitForFunction(
      async () => (await import(/** @type {any} */ ("/core/runs.js"))).currentRun.value?.id !== "1",
    );
    await page.getByRole("heading", { name: "finished", level: 2 }).waitFor();
    assert.equal(await page.getByRole("dialog").count(), 0);
  },
);

studioTest(
  "a manifest with more guards than forms could tell asks for all of them at once",
  {
    "many.yaml": [
      "ccm:\n  resources:\n    - exec:\n",
      ...Array.from({ length: 150 }, (_, at) => {
        const guard = `test -e /guard-${at}`;
        return `        - number ${at}: {command: /bin/true, unless: "${guard}"}\n`;
      }),
    ].join(""),
  },
  async ({ page }) => {
    await page.getByRole("option").first().waitFor();
    await checked(page);
    /** @type {string[]} */
    const asked = [];
    page.on("request", (request) => asked.push(request.url()));
    await page.keyboard.press("ControlOrMeta+Enter");
    const dialog = page.getByRole("dialog", { name: "This plan runs commands" });
    await dialog.getByText("it runs 150 commands").waitFor();
    assert.equal(await dialog.getByText("test -e /guard-149").count(), 1);
    assert.deepEqual(
      asked.filter((url) => /\/(form|check)$/.test(url)),
      [],
    );
  },
);

studioTest(
  "child manifests unfold in the outline, and lead to their file",
  FILES,
  async ({ page }) => {
    await openFile(page, "site.yaml");
    await page.locator(".block", { hasText: "owner root · group root · mode 0644" }).waitFor();
    await choose(page, "apply#deep/child.yaml");
    assert.equal(await page.getByRole("option", { name: /reload the child/ }).count(), 0);
    await page.locator("#outline").focus();
    await page.keyboard.press("ArrowRight");
    const child = page.getByRole("option", { name: /^exec#reload the child, read-only/ });
    await child.waitFor();
    await accessible(page, "an outline with a child manifest");
    await page.keyboard.press("ArrowDown");
    await page.getByRole("heading", { name: "exec#reload the child" }).waitFor();
    await page.getByRole("button", { name: "Open deep/child.yaml" }).waitFor();
    await accessible(page, "a resource of a child manifest");
    await page.keyboard.press("ArrowLeft");
    await page.getByRole("heading", { name: "apply#deep/child.yaml" }).waitFor();
    await page.keyboard.press("ArrowLeft");
    await child.waitFor({ state: "detached" });
    await page.locator(".below").first().click();
    await child.click();
    await page.locator("#outline").focus();
    await page.keyboard.press("Enter");
    await page.locator("#h-form", { hasText: "exec#reload the child" }).waitFor();
    await page.waitForFunction(
      () =>
        location.hash.includes("deep%2Fchild.yaml") || location.hash.includes("deep/child.yaml"),
    );
    await page.getByRole("button", { name: "Delete resource" }).waitFor();
  },
  { bypassPolicy: true, theme: "dark" },
);

studioTest(
  "resources that a template makes are shown as rendered",
  FILES,
  async ({ page }) => {
    await openFile(page, "by-template.yaml");
    await page.getByRole("option", { name: /^exec#one, read-only/ }).click();
    await page.getByRole("option", { name: /^exec#two, read-only/ }).waitFor();
    await page.getByRole("heading", { name: "exec#one" }).waitFor();
    await accessible(page, "resources of a template");
    await page.locator(".rendered").getByRole("button", { name: "made.jet" }).click();
    await page.getByText("Only manifests have a form").waitFor();
  },
  { bypassPolicy: true },
);
