// Runs the tests in the browser: `node run.js [PART OF A FILE NAME…]`.
import { spawnSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { availableParallelism } from "node:os";

if (!process.env["CCM_BINARY"]) {
  console.error("CCM_BINARY names the ccm to test");
  process.exit(64);
}
rmSync(new URL("results", import.meta.url), { recursive: true, force: true });
const wanted = process.argv.slice(2);
const files = readdirSync(new URL("tests", import.meta.url))
  .filter(
    (name) =>
      name.endsWith(".test.js") &&
      (wanted.length === 0 || wanted.some((part) => name.includes(part))),
  )
  .map((name) => `tests/${name}`);
const concurrency = Math.max(1, Math.min(2, availableParallelism()));
const { status } = spawnSync(
  process.execPath,
  ["--test", `--test-concurrency=${concurrency}`, "--test-reporter=spec", ...files],
  {
    stdio: "inherit",
    cwd: new URL(".", import.meta.url),
  },
);
process.exit(status ?? 1);
