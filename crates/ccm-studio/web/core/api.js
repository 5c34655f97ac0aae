// Talks to the server: JSON over HTTP with the key, and event streams.
import { key, lostKey } from "./session.js";
import { gone, back } from "./connection.js";

/** An answer that says what went wrong. */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {Api.Error} error
   */
  constructor(status, error) {
    super(error.message);
    this.status = status;
    this.code = error.code;
    this.hint = error.hint;
    this.request = error.request;
    /** Everything the server said, such as `text` and `digest` of `changed`. */
    this.details = error;
  }
}

/** The server cannot be reached. */
export class Gone extends Error {
  constructor() {
    super("ccm studio has ended or cannot be reached");
  }
}

/** Whether a request was given up by us. @param {unknown} error */
export const aborted = (error) => error instanceof DOMException && error.name === "AbortError";

/**
 * @typedef {object} Options
 * @property {unknown} [body] sent as JSON
 * @property {Record<string, string>} [headers]
 * @property {AbortSignal} [signal]
 */

/**
 * One request below `/api/v1`. What it answers is known to those below.
 * @param {string} method
 * @param {string} path such as `files/site/web.yaml`, each part encoded
 * @param {Options} [options]
 * @returns {Promise<any>}
 */
async function request(method, path, options = {}) {
  const response = await send(method, path, options);
  const type = response.headers.get("content-type") ?? "";
  const body = type.startsWith("application/json") ? await response.json() : null;
  return body;
}

/**
 * @template {keyof Api.Get} P
 * @param {P} path
 * @param {Options} [options]
 * @returns {Promise<Api.Get[P]>}
 */
export const get = (path, options) => request("GET", path, options);

/**
 * @template {keyof Api.Post} P
 * @param {P} path
 * @param {unknown} body
 * @param {Options} [options]
 * @returns {Promise<Api.Post[P]>}
 */
export const post = (path, body, options = {}) => request("POST", path, { ...options, body });

/**
 * @template {keyof Api.Put} P
 * @param {P} path
 * @param {unknown} body
 * @param {Options} [options]
 * @returns {Promise<Api.Put[P]>}
 */
export const put = (path, body, options = {}) => request("PUT", path, { ...options, body });

/**
 * @template {keyof Api.Delete} P
 * @param {P} path
 * @returns {Promise<Api.Delete[P]>}
 */
export const remove = (path) => request("DELETE", path);

/** A path of names as a part of an address. @param {string} path */
export const encodePath = (path) => path.split("/").map(encodeURIComponent).join("/");

/**
 * @param {string} method @param {string} path @param {Options} options
 * @returns {Promise<Response>}
 */
async function send(method, path, { body, headers = {}, signal }) {
  /** @type {Record<string, string>} */
  const all = { accept: "application/json", ...headers };
  if (key()) all["authorization"] = `Bearer ${key()}`;
  if (body !== undefined) all["content-type"] = "application/json";
  let response;
  try {
    response = await fetch(`/api/v1/${path}`, {
      method,
      headers: all,
      body: body === undefined ? null : JSON.stringify(body),
      cache: "no-store",
      credentials: "omit",
      ...(signal ? { signal } : {}),
    });
  } catch (error) {
    if (aborted(error)) throw error;
    gone();
    throw new Gone();
  }
  back();
  if (response.ok) return response;
  throw await failure(response);
}

/** @param {Response} response */
async function failure(response) {
  /** @type {Api.Error} */
  let error = {
    code: "internal",
    message: `the server answered ${response.status}`,
    request: "",
  };
  try {
    error = (await response.json()).error ?? error;
  } catch {
    // Not JSON: the status says it.
  }
  const result = new ApiError(response.status, error);
  if (response.status === 401) lostKey(result.code);
  return result;
}

/** @typedef {{id: string, event: string, data: unknown}} ServerEvent */

/**
 * Reads an event stream until it ends. `EventSource` cannot send the key.
 * @template {keyof Streams} P
 * @param {P} path
 * @param {(event: StreamEvent<Streams[P]>) => void} receive
 * @param {{signal?: AbortSignal, after?: string, open?: () => void}} [options] `after`: the last id
 *   that is known
 */
export async function stream(path, receive, { signal, after, open } = {}) {
  /** @type {Record<string, string>} */
  const headers = { accept: "text/event-stream" };
  if (after) headers["last-event-id"] = after;
  const response = await send("GET", path, signal ? { headers, signal } : { headers });
  if (!response.body) return;
  open?.();
  const parser = new EventParser((event) =>
    receive(/** @type {StreamEvent<Streams[P]>} */ (event)),
  );
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      parser.add(value);
    }
  } catch (error) {
    if (aborted(error)) throw error;
    throw new Gone();
  }
}

/** Cuts the text of an event stream into events. */
export class EventParser {
  /** @param {(event: ServerEvent) => void} receive */
  constructor(receive) {
    this.receive = receive;
    this.rest = "";
    this.id = "";
    this.event = "";
    /** @type {string[]} */
    this.data = [];
  }

  /** @param {string} text */
  add(text) {
    const lines = (this.rest + text).split(/\r?\n/);
    this.rest = lines.pop() ?? "";
    for (const line of lines) this.line(line);
  }

  /** @param {string} line */
  line(line) {
    if (line === "") return this.dispatch();
    const [, field = "", value = ""] = line.match(/^([^:]*):? ?(.*)$/s) ?? [];
    if (field === "id") this.id = value;
    if (field === "event") this.event = value;
    if (field === "data") this.data.push(value);
  }

  dispatch() {
    const { id, event, data } = this;
    this.event = "";
    this.data = [];
    if (data.length === 0) return;
    this.receive({ id, event: event || "message", data: JSON.parse(data.join("\n")) });
  }
}
