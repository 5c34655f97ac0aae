// Every page and state: axe finds nothing, in neither theme.
import { after } from "node:test";
import { accessible, checked, choose, studioTest, textBecomes } from "../lib/check.js";
import { FILES, WEB, WRONG } from "../lib/fixtures.js";
import { closeBrowser } from "../lib/studio.js";

after(closeBrowser);

const PAGES = ["data", "templates", "graph", "plan", "history"];

const options = { bypassPolicy: true, height: 1000 };

studioTest(
  "design, with problems",
  { "web.yaml": WRONG, "zz/other.yaml": FILES, "templates/a.jet": "x" },
  async ({ page }) => {
    await page.getByRole("option").first().waitFor();
    await checked(page);
    await accessible(page, "design, no resource chosen");
    await choose(page, "file#/tmp/ccm-studio-test/app.conf");
    await page.locator(".editor .cm-finding").first().waitFor();
    await accessible(page, "design, a problem");
    for (const summary of await page.locator("details.more summary").all()) await summary.click();
    await page.getByRole("button", { name: "Filter by type and state" }).click();
    await page.getByRole("button", { name: "Add to require" }).click();
    await page.getByRole("combobox", { name: "Add to require" }).press("ArrowDown");
    await accessible(page, "design, everything open");
    await page.keyboard.press("Escape");
    await page.keyboard.press("ControlOrMeta+k");
    await page.getByRole("dialog", { name: "Search" }).waitFor();
    await accessible(page, "the palette");
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Keyboard and help" }).click();
    await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
    await accessible(page, "the list of keys");
    await page.keyboard.press("Escape");
    await page.locator(".editor .cm-content").focus();
    await page.keyboard.press("ControlOrMeta+f");
    await page.locator(".editor .cm-search").waitFor();
    await accessible(page, "search in the text");
  },
  options,
);

studioTest(
  "design, other states",
  { "web.yaml": FILES.replace("ccm:\n", "ccm:\r\n"), "other.yaml": WEB, "templates/a.jet": "x" },
  async ({ page, server }) => {
    await page.goto(`${server.origin}/#/design?file=web.yaml`);
    await page.getByText("has both LF and CRLF").waitFor();
    await accessible(page, "mixed line ends");
    await page.getByRole("link", { name: "other.yaml" }).click();
    await choose(page, "file#/tmp/ccm-studio-test/app.conf");
    await page.getByRole("textbox", { name: "alias" }).fill("mine");
    await page.keyboard.press("Enter");
    await textBecomes(page, (now) => now.includes("alias: mine"), "changed");
    await server.write("other.yaml", FILES);
    await page.getByText("was changed on disk").waitFor();
    await accessible(page, "a conflict");
    await page.getByRole("button", { name: "Keep mine" }).click();
    await page.locator(".editor .cm-content").focus();
    await page.keyboard.press("ControlOrMeta+Home");
    await page.keyboard.type("x: [");
    await page.getByText(/The form shows the last good values/).waitFor();
    await accessible(page, "not YAML");
    await page.getByRole("link", { name: "templates/a.jet" }).click();
    await page.getByText("Only manifests have a form").waitFor();
    await accessible(page, "a template");
    await server.stop("SIGKILL");
    await page.getByText("ccm studio has ended.").waitFor();
    await accessible(page, "the server is gone");
  },
  { ...options, noise: /Failed to load resource|net::ERR/ },
);

studioTest(
  "the other pages",
  { "web.yaml": WEB },
  async ({ page }) => {
    await page.getByRole("option").first().waitFor();
    for (const name of PAGES) {
      await page.keyboard.press("Escape");
      await page.evaluate((id) => (location.hash = `#/${id}?file=web.yaml`), name);
      await page.locator(`.rail a[aria-current=page][href^="#/${name}"]`).waitFor();
      await page.locator("main h1").waitFor();
      await accessible(page, name);
    }
  },
  options,
);

studioTest(
  "nothing here, and not connected",
  {},
  async ({ page, server }) => {
    await page.getByRole("heading", { name: "No manifests here yet" }).waitFor();
    await accessible(page, "an empty directory");
    await page.getByRole("button", { name: "New manifest" }).click();
    await page.getByRole("dialog").waitFor();
    await accessible(page, "new manifest");
    await page.evaluate(() => localStorage.setItem("ccm-studio-key", "wrong"));
    await page.goto(`${server.origin}/?again#/design`);
    await page.getByRole("heading", { name: "Not connected" }).waitFor();
    await accessible(page, "not connected");
  },
  { ...options, noise: /401/ },
);
