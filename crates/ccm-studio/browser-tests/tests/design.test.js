// Design: form and text are one, undo is one, nothing is lost.
import assert from "node:assert/strict";
import { after } from "node:test";
import { checked, choose, studioTest, text, textBecomes } from "../lib/check.js";
import { FILES, WEB, WRONG } from "../lib/fixtures.js";
import { closeBrowser } from "../lib/studio.js";

after(closeBrowser);

/** The line of the text that the cursor is in. @param {import("playwright-core").Page} page */
const lineOfCursor = (page) =>
  page.evaluate(async () => {
    const doc = (await import(/** @type {any} */ ("/core/store.js"))).current.value;
    return doc.text().split("\n")[doc.cursor.value[0]];
  });

const FILE = "file#/tmp/ccm-studio-test/app.conf";

studioTest(
  "a form edit changes nothing but its own bytes, and undo takes it back",
  { "web.yaml": WEB },
  async ({ page, server }) => {
    await choose(page, FILE);
    const mode = page.getByRole("textbox", { name: "mode" });
    await mode.fill("0600");
    await mode.press("Enter");
    await textBecomes(
      page,
      (now) => now === WEB.replace('"0640"', '"0600"'),
      "only the mode differs",
    );
    await page.getByText("unsaved", { exact: true }).first().waitFor();

    // The boxes follow the number, and the number the boxes.
    await page.getByRole("checkbox", { name: "group: read" }).waitFor();
    await page.waitForFunction(
      () => !(/** @type {HTMLInputElement} */ (document.getElementById("f-mode-group-r"))?.checked),
    );
    await page.getByRole("checkbox", { name: "group: read" }).check({ force: true });
    await textBecomes(page, (now) => now === WEB, "the box is the same edit");

    // Typing in the text and the form are one history.
    const alias = page.getByRole("textbox", { name: "alias" });
    await alias.fill("settings");
    await alias.press("Enter");
    await textBecomes(page, (now) => now.includes("alias: settings"), "the alias is written");
    await alias.press("ControlOrMeta+z");
    await textBecomes(page, (now) => now === WEB, "undo from the form");
    await page.waitForFunction(
      () =>
        /** @type {HTMLTextAreaElement} */ (document.getElementById("f-alias"))?.value === "config",
    );
    await alias.press("ControlOrMeta+Shift+z");
    await textBecomes(page, (now) => now.includes("alias: settings"), "redo from the form");
    await page.keyboard.press("ControlOrMeta+s");
    await page.getByText("Saved web.yaml").first().waitFor();
    assert.equal(await server.read("web.yaml"), WEB.replace("alias: config", "alias: settings"));
  },
);

studioTest(
  "what is chosen in the form is shown at once, whatever older answers say",
  { "web.yaml": WEB },
  async ({ page }) => {
    await choose(page, FILE);
    await checked(page);
    /** @type {(() => Promise<void>)[]} */
    const held = [];
    const box = (/** @type {string} */ name) => page.getByRole("checkbox", { name });
    await page.route("**/api/v1/form", (route) => void held.push(() => route.continue()));
    await box("owner: execute").check({ force: true });
    await textBecomes(
      page,
      (now) => now === WEB.replace('"0640"', '"0740"'),
      "the first box is written",
    );
    // The check is answered, the form is not: what was chosen stays, and the next choice builds on
    // it.
    await checked(page);
    assert.ok(await box("owner: execute").isChecked());
    await box("group: execute").check({ force: true });
    await textBecomes(
      page,
      (now) => now === WEB.replace('"0640"', '"0750"'),
      "the second box keeps the first",
    );
    await checked(page);
    assert.deepEqual(
      [await box("owner: execute").isChecked(), await box("group: execute").isChecked()],
      [true, true],
    );
    assert.equal(await page.locator("#f-mode").inputValue(), "0750");
    await page.unroute("**/api/v1/form");
    for (const release of held) await release().catch(() => {});
    await page.locator("#outline").focus();
    await page.keyboard.press("ControlOrMeta+z");
    await page.waitForFunction(
      () =>
        /** @type {HTMLTextAreaElement} */ (document.getElementById("f-mode"))?.value === "0740",
    );
    assert.deepEqual(
      [await box("owner: execute").isChecked(), await box("group: execute").isChecked()],
      [true, false],
    );

    // What cannot be written is not shown as if it were, but nobody types it twice.
    await page.route("**/api/v1/edit", (route) =>
      route.fulfill({
        status: 422,
        json: { error: { code: "edit", kind: "unsupported", message: "not here", request: "r0" } },
      }),
    );
    await box("other: read").click({ force: true });
    await page.locator(".toast", { hasText: "not here" }).waitFor();
    await page.waitForFunction(
      () => !(/** @type {HTMLInputElement} */ (document.getElementById("f-mode-other-r"))?.checked),
    );
    const alias = page.getByRole("textbox", { name: "alias" });
    await alias.fill("long to type");
    await alias.press("Enter");
    await page.locator(".toast", { hasText: "set alias" }).waitFor();
    assert.equal(await alias.inputValue(), "long to type");
  },
);

studioTest(
  "typing in the text reaches the form, and undo crosses both",
  { "web.yaml": WEB },
  async ({ page }) => {
    await choose(page, FILE);
    await page.locator(".editor .cm-content").focus();
    await page.keyboard.press("ControlOrMeta+f");
    await page.locator(".editor input[name=search]").pressSequentially("alias: config");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Escape");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.type("uration");
    await page.waitForFunction(
      () =>
        /** @type {HTMLTextAreaElement} */ (document.getElementById("f-alias"))?.value ===
        "configuration",
    );
    const mode = page.getByRole("textbox", { name: "mode" });
    await mode.fill("0600");
    await mode.press("Enter");
    await textBecomes(
      page,
      (now) => now.includes('mode: "0600"') && now.includes("configuration"),
      "both edits are there",
    );
    await mode.press("ControlOrMeta+z");
    await textBecomes(
      page,
      (now) => now.includes('mode: "0640"') && now.includes("configuration"),
      "the form's edit goes first",
    );
    await page.keyboard.press("ControlOrMeta+z");
    await textBecomes(page, (now) => now === WEB, "then what was typed");
  },
);

studioTest(
  "a finding stands below its line, in the form, in the problems, and its fix is one click",
  { "web.yaml": WRONG.replace("content:", "contnet:") },
  async ({ page }) => {
    await choose(page, FILE);
    await page.locator(".editor .cm-finding", { hasText: "contnet" }).waitFor();
    await page.locator(".editor .cm-carets").first().waitFor();
    await page.locator(".problems li", { hasText: "contnet" }).waitFor();
    await page.locator(".rail .dot").waitFor();
    await page.locator(".editor .cm-acts button", { hasText: "content" }).first().click();
    await textBecomes(page, (now) => now === WRONG, "the fix renames the key and nothing else");
    const mode = page.getByRole("textbox", { name: "mode" });
    await page.locator("[data-field=mode] .err").waitFor();
    assert.equal(await mode.getAttribute("aria-invalid"), "true");
    await mode.fill("0640");
    await mode.press("Enter");
    await page.getByText("No problems found").waitFor();
    assert.equal(await text(page), WEB);
  },
);

studioTest(
  "a value of the defaults is shown as theirs, and clearing an own one goes back",
  { "web.yaml": WEB },
  async ({ page }) => {
    await choose(page, FILE);
    const owner = page.locator("[data-field=owner]");
    await owner.getByText("default", { exact: true }).waitFor();
    const input = page.locator("#f-owner");
    assert.equal(await input.inputValue(), "root");
    await input.fill("nobody");
    await input.press("Enter");
    await textBecomes(page, (now) => now.includes("            owner: nobody\n"), "an own value");
    await owner.getByText("default", { exact: true }).waitFor({ state: "detached" });
    await input.fill("");
    await input.press("Enter");
    await textBecomes(page, (now) => now === WEB, "back to the default, byte by byte");
    await owner.getByText("default", { exact: true }).waitFor();
  },
);

studioTest(
  "while the text is not YAML, form and outline keep the last good state",
  { "web.yaml": WEB },
  async ({ page }) => {
    await choose(page, FILE);
    await page.locator(".editor .cm-content").focus();
    await page.keyboard.press("ControlOrMeta+Home");
    await page.keyboard.type("x: [\n");
    await page.getByText(/The form shows the last good values/).waitFor();
    assert.equal((await page.locator("#f-mode").getAttribute("readonly")) !== null, true);
    assert.equal(await page.getByRole("option").count(), 4);
    for (let step = 0; step < 6 && (await text(page)) !== WEB; step += 1) {
      await page.keyboard.press("ControlOrMeta+z");
    }
    await textBecomes(page, (now) => now === WEB, "undone");
    await page.getByText(/The form shows the last good values/).waitFor({ state: "detached" });
  },
);

studioTest(
  "resources move, are duplicated, deleted and added, each one step of undo",
  { "web.yaml": FILES },
  async ({ page }) => {
    const names = () =>
      page
        .getByRole("option")
        .evaluateAll((rows) =>
          rows.map((row) =>
            /** @type {HTMLElement} */ (row).querySelector("bdi")?.textContent?.slice(-1),
          ),
        );
    await choose(page, "file#/tmp/ccm-studio-test-c");
    await page.locator("#outline").focus();
    await page.keyboard.press("Alt+ArrowUp");
    await textBecomes(page, (now) => now.indexOf("test-c") < now.indexOf("test-b"), "c before b");
    await checked(page);
    assert.deepEqual(await names(), ["a", "c", "b"]);
    // What was moved stays chosen, and the cursor is where it is now.
    await page.locator("#h-form", { hasText: "file#/tmp/ccm-studio-test-c" }).waitFor();
    assert.match(await lineOfCursor(page), /test-c/);
    await page.locator("#outline").focus();
    await page.keyboard.press("ControlOrMeta+z");
    await textBecomes(page, (now) => now === FILES, "undone");

    // The same with the pointer.
    const rows = page.getByRole("option");
    await rows.nth(2).dragTo(rows.nth(1), { targetPosition: { x: 90, y: 6 } });
    await textBecomes(
      page,
      (now) => now.indexOf("test-c") < now.indexOf("test-b"),
      "dragged before b",
    );
    await page.locator("#outline").focus();
    await page.keyboard.press("ControlOrMeta+z");
    await textBecomes(page, (now) => now === FILES, "undone again");
    await checked(page);

    // b refers to a: before it, it is only put after a question.
    await choose(page, "file#/tmp/ccm-studio-test-b");
    await page.locator("#outline").focus();
    await page.keyboard.press("Alt+ArrowUp");
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Cancel" }).waitFor();
    assert.equal(await page.evaluate(() => document.activeElement?.textContent), "Cancel");
    await page.keyboard.press("Enter");
    await dialog.waitFor({ state: "detached" });
    assert.equal(await text(page), FILES);

    await choose(page, "file#/tmp/ccm-studio-test-a");
    await page.locator("#outline").focus();
    await page.keyboard.press("ControlOrMeta+d");
    await page.getByRole("dialog").getByRole("textbox").fill("/tmp/ccm-studio-test-d");
    await page.keyboard.press("Enter");
    await textBecomes(page, (now) => now.includes("/tmp/ccm-studio-test-d:"), "a copy");
    await page.locator("#h-form", { hasText: "test-d" }).waitFor();

    await page.locator("#outline").focus();
    await page.keyboard.press("Delete");
    await textBecomes(page, (now) => now === FILES, "deleted again");
    await page
      .locator(".toast", { hasText: "Deleted" })
      .getByRole("button", { name: "Undo" })
      .click();
    await textBecomes(
      page,
      (now) => now.includes("/tmp/ccm-studio-test-d:"),
      "the note's way back",
    );
    await page.locator("#outline").focus();
    await page.keyboard.press("ControlOrMeta+z");
    await textBecomes(page, (now) => now === FILES, "undone once more");

    await page.locator("#outline").focus();
    await page.keyboard.press("a");
    await page.getByRole("dialog").getByRole("button", { name: /^exec/ }).click();
    await page.getByRole("dialog").getByRole("textbox").fill("say hello");
    await page.keyboard.press("Enter");
    await textBecomes(page, (now) => now.includes("say hello"), "an exec");
  },
);

studioTest(
  "what others write is offered, never lost and never overwritten",
  { "web.yaml": FILES },
  async ({ page, server }) => {
    await choose(page, "file#/tmp/ccm-studio-test-a");
    // Without changes of our own it is taken over silently.
    await server.write("web.yaml", FILES.replace("one", "ONE"));
    await textBecomes(page, (now) => now.includes("ONE"), "taken over");
    assert.equal(await page.getByText("unsaved", { exact: true }).count(), 0);

    await page.getByRole("textbox", { name: "alias" }).fill("mine");
    await page.keyboard.press("Enter");
    await textBecomes(page, (now) => now.includes("alias: mine"), "a change of our own");
    await server.write("web.yaml", FILES.replace("one", "theirs"));
    await page.keyboard.press("ControlOrMeta+s");
    await page.getByText("was changed on disk").waitFor();
    assert.equal(await server.read("web.yaml"), FILES.replace("one", "theirs"));
    await page.getByRole("button", { name: "Show difference" }).click();
    await page.getByRole("dialog").locator(".dl", { hasText: "theirs" }).waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
    await page.getByRole("button", { name: "Keep mine" }).click();
    await page.keyboard.press("ControlOrMeta+s");
    await page.getByText("Saved web.yaml").first().waitFor();
    assert.ok((await server.read("web.yaml")).includes("alias: mine"));

    await page.getByRole("textbox", { name: "alias" }).fill("again");
    await page.keyboard.press("Enter");
    await textBecomes(page, (now) => now.includes("alias: again"), "another change");
    await server.write("web.yaml", FILES);
    await page.getByRole("button", { name: "Take theirs" }).click();
    await textBecomes(page, (now) => now === FILES, "theirs");
  },
);

studioTest(
  "mixed line ends are asked about, not changed silently",
  { "web.yaml": FILES.replace("ccm:\n", "ccm:\r\n") },
  async ({ page, server }) => {
    await page.getByText("has both LF and CRLF line ends").waitFor();
    await choose(page, "file#/tmp/ccm-studio-test-a");
    await page.getByRole("textbox", { name: "alias" }).fill("mine");
    await page.keyboard.press("Enter");
    await textBecomes(page, (now) => now.includes("alias: mine"), "changed");
    await page.keyboard.press("ControlOrMeta+s");
    assert.ok((await server.read("web.yaml")).startsWith("ccm:\r\n"));
    await page.getByRole("button", { name: "Save with CRLF" }).click();
    await page.getByText("Saved web.yaml").first().waitFor();
    const written = await server.read("web.yaml");
    assert.ok(written.includes("alias: mine\r\n") && !/[^\r]\n/.test(written));
  },
);

studioTest(
  "an empty directory explains itself, and a new manifest validates",
  {},
  async ({ page, server }) => {
    await page.getByRole("heading", { name: "No manifests here yet" }).waitFor();
    for (const title of [
      "One file",
      "A package, its configuration, its service",
      "Data for each kind of machine",
    ]) {
      await page.getByRole("button", { name: title }).click();
      await page.getByText("draft", { exact: true }).first().waitFor();
      await checked(page);
      assert.equal(await page.locator(".problems li.error").count(), 0, title);
      await page.goBack();
      await page.getByRole("link", { name: /draft/ }).first().waitFor();
      await page.evaluate(async () => {
        const store = await import(/** @type {any} */ ("/core/store.js"));
        store.documents.clear();
        store.current.value = null;
      });
      await page.getByRole("heading", { name: "No manifests here yet" }).waitFor();
    }
    await page.getByRole("button", { name: "New manifest" }).click();
    await page.getByRole("dialog").getByRole("textbox").fill("../outside.yaml");
    await page.keyboard.press("Enter");
    await page.getByText("must lead to a place below").waitFor();
    await page.getByRole("dialog").getByRole("textbox").fill("first.yaml");
    await page.keyboard.press("Enter");
    await page.getByText("Saved first.yaml").first().waitFor();
    assert.ok((await server.read("first.yaml")).includes("ccm:"));
    await checked(page);
    await page.getByText("No problems found").waitFor();
  },
);

studioTest(
  "the text stays when the server is gone, and the page finds it again",
  { "web.yaml": FILES },
  async ({ page, server }) => {
    await choose(page, "file#/tmp/ccm-studio-test-a");
    await server.stop("SIGKILL");
    await page.locator(".editor .cm-content").focus();
    await page.keyboard.type("# typed after the end\n");
    await page.getByText("ccm studio has ended.").waitFor();
    assert.ok((await text(page)).includes("# typed after the end"));
    await page.getByRole("button", { name: "Copy text" }).click();
    await page.getByText("Copied the text").first().waitFor();
  },
  { noise: /ERR_CONNECTION_REFUSED|Failed to load resource|ERR_INCOMPLETE_CHUNKED|net::ERR/ },
);

studioTest(
  "a link works once, and a wrong key leads to how to connect",
  { "web.yaml": FILES },
  async ({ page, server }) => {
    await choose(page, "file#/tmp/ccm-studio-test-a");
    assert.ok(!page.url().includes("token"));
    assert.equal(
      server.printed.trimEnd().split("\n").length,
      1,
      "standard output has one line, the link",
    );
    const context = await /** @type {any} */ (page.context().browser()).newContext();
    const second = await context.newPage();
    await second.goto(server.url);
    await second.getByRole("heading", { name: "This link was used before" }).waitFor();
    const third = await context.newPage();
    await third.goto(`${server.origin}/#/plan?file=web.yaml`);
    await third.getByRole("heading", { name: "Not connected" }).waitFor();
    await context.close();
  },
  { noise: /401/ },
);
