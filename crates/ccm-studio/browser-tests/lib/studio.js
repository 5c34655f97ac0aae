// Starts `ccm studio` for a test, in a fresh directory, and a page of it.
import { spawn } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { chromium } from "playwright-core";

/** @typedef {import("playwright-core").Page} Page */
/** @typedef {import("playwright-core").Browser} Browser */

const BINARY = process.env["CCM_BINARY"] ?? "";
/** Waiting is for words on the page. A loaded machine may take long to show them. */
const PATIENCE = Number(process.env["CCM_TEST_PATIENCE"] ?? 30_000);

/** @type {Promise<Browser> | undefined} */
let shared;

/** One browser for all tests of a file; each has a context of its own. */
export function browser() {
  shared ??= chromium.launch({
    executablePath: process.env["CCM_CHROMIUM"] ?? "/usr/bin/chromium",
    args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
  });
  return shared;
}

export async function closeBrowser() {
  await (await shared)?.close();
  shared = undefined;
}

/** A running `ccm studio`. */
export class Server {
  /**
   * @param {string} directory
   * @param {import("node:child_process").ChildProcess} child
   * @param {string} url
   */
  constructor(directory, child, url) {
    this.directory = directory;
    this.child = child;
    this.url = url;
    this.origin = new URL(url).origin;
    this.log = "";
    /** What stood on its standard output. */
    this.printed = "";
    child.stderr?.on("data", (data) => (this.log += data));
  }

  /** @param {string} name */
  path(name) {
    return join(this.directory, name);
  }

  /** @param {string} name */
  read(name) {
    return readFile(this.path(name), "utf8");
  }

  /** @param {string} name @param {string} text */
  async write(name, text) {
    await mkdir(dirname(this.path(name)), { recursive: true });
    await writeFile(this.path(name), text);
  }

  /** Ends it, and waits until it has. @param {NodeJS.Signals} [signal] */
  async stop(signal = "SIGTERM") {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill(signal);
    await ended;
  }
}

/**
 * @param {Record<string, string>} files
 * @param {{args?: string[], directory?: string}} [options]
 */
export async function start(files, { args = [], directory } = {}) {
  if (!BINARY) throw new Error("CCM_BINARY names the ccm to test");
  const place = directory ?? (await mkdtemp(join(tmpdir(), "ccm-studio-test-")));
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(place, name)), { recursive: true });
    await writeFile(join(place, name), text);
  }
  const assets = process.env["CCM_STUDIO_ASSETS"];
  const all = [
    "studio",
    place,
    "--json",
    "--idle",
    "10m",
    ...(assets ? ["--assets", assets] : []),
    ...args,
  ];
  const child = spawn(BINARY, all, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, CCM_STATE_DIR: join(place, ".state"), NO_COLOR: "1" },
  });
  let errors = "";
  child.stderr.on("data", (data) => (errors += data));
  let printed = "";
  /** @type {string} */
  const line = await new Promise((resolve, reject) => {
    child.stdout.on("data", (data) => {
      printed += data;
      const found = printed.match(/^\{.*\}$/m);
      if (found) resolve(found[0]);
    });
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`ccm studio ended with ${code}: ${errors}`)));
  });
  const server = new Server(place, child, JSON.parse(line).url);
  server.printed = printed;
  server.log = errors;
  return server;
}

/**
 * @typedef {object} Opened
 * @property {Page} page
 * @property {Server} server
 * @property {string[]} noise console messages, errors of the page, requests that left its origin
 * @property {() => Promise<void>} close
 */

/**
 * A Studio with a page of it.
 * @param {Record<string, string>} files
 * @param {{
 *   args?: string[], theme?: "light" | "dark", width?: number, height?: number, hash?: string,
 *   forcedColors?: boolean, reducedMotion?: boolean, zoom?: number, bypassPolicy?: boolean,
 *   link?: boolean,
 * }} [options]
 * @returns {Promise<Opened>}
 */
export async function open(files, options = {}) {
  const {
    args = [],
    theme = "light",
    width = 1440,
    height = 900,
    hash,
    zoom = 1,
    bypassPolicy = false,
    link = true,
  } = options;
  const server = await start(files, { args });
  const context = await (
    await browser()
  ).newContext({
    viewport: { width: Math.round(width / zoom), height: Math.round(height / zoom) },
    deviceScaleFactor: zoom,
    colorScheme: theme,
    forcedColors: options.forcedColors ? "active" : "none",
    reducedMotion: options.reducedMotion === false ? "no-preference" : "reduce",
    locale: "en-GB",
    bypassCSP: bypassPolicy,
    permissions: ["clipboard-read", "clipboard-write"],
  });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  /** @type {string[]} */
  const noise = [];
  page.on("console", (message) => noise.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => noise.push(`error: ${error.stack ?? error.message}`));
  page.on("request", (request) => {
    const { origin, protocol } = new URL(request.url());
    if (origin !== server.origin && protocol !== "blob:") noise.push(`request: ${request.url()}`);
  });
  await page.goto(link ? server.url : server.origin);
  if (hash) await page.evaluate((value) => (location.hash = value), hash);
  return {
    page,
    server,
    noise,
    async close() {
      await context.close();
      await server.stop("SIGKILL");
      await rm(server.directory, { recursive: true, force: true });
    },
  };
}
