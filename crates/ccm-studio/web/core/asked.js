// Requests whose answers a page shows: asked again when what they depend on
// changes, given up when the page goes or someone stops them.
import { useEffect, useRef, useState } from "../vendor/preact.js";
import { aborted, get, post } from "./api.js";
import { facts } from "./store.js";

/** Typing asks once it rests for this long. */
const REST = 150;

/**
 * What takes time, and can be stopped.
 * @typedef {{stopped: boolean, stop: () => void, again: () => void}} Stoppable
 */

/**
 * @typedef {object} Answered
 * @property {any} answer the last one
 * @property {any} problem why there is no newer one
 * @typedef {Answered & Stoppable} Asked
 */

/**
 * @param {string | null} path null asks nothing
 * @param {(() => any) | null} body of a POST; null is a GET
 * @param {any[]} deps what the answer depends on
 * @param {{keep?: boolean}} [options] `keep`: the last answer stays until the next one is there
 * @returns {Asked}
 */
export function useAnswer(path, body, deps, options) {
  const ask = (/** @type {{signal: AbortSignal}} */ by) => (body ? post(/** @type {string} */ (path), body(), by) : get(/** @type {string} */ (path), by));
  return useAsked(path === null ? null : ask, body ? REST : 0, [path, ...deps], options);
}

/**
 * An answer about the text of a file as it stands, with the chosen facts.
 * @param {string} path @param {OpenFile | null | undefined} file null asks nothing
 * @returns {Asked}
 */
export function useAnswerAbout(path, file) {
  const choice = facts.value;
  const body = () => ({ path: file?.path.peek(), ...(choice ? { facts: choice } : {}) });
  return useAsked(file ? (by) => file.ask(path, file.editor.doc, body(), by) : null, REST, [path, file, file?.revision.value, choice]);
}

/**
 * @param {((by: {signal: AbortSignal}) => Promise<any>) | null} ask
 * @param {number} rest how long to wait before it is asked
 * @param {any[]} deps @param {{keep?: boolean}} [options]
 * @returns {Asked}
 */
function useAsked(ask, rest, deps, { keep = true } = {}) {
  const [state, setState] = useState({ answer: /** @type {any} */ (null), problem: /** @type {any} */ (null), stopped: false });
  const [round, setRound] = useState(0);
  const running = useRef(/** @type {AbortController | null} */ (null));
  useEffect(() => {
    setState((old) => ({ ...old, ...(keep ? {} : { answer: null }), stopped: false }));
    if (!ask) return;
    const controller = new AbortController();
    running.current = controller;
    const begin = () => ask({ signal: controller.signal })
      .then((answer) => setState({ answer, problem: null, stopped: false }))
      .catch((error) => !aborted(error) && setState((old) => ({ ...old, problem: error })));
    const timer = rest ? setTimeout(begin, rest) : void begin();
    return () => {
      clearTimeout(timer ?? undefined);
      controller.abort();
    };
  }, [ask === null, round, ...deps]);
  return {
    ...state,
    stop() {
      running.current?.abort();
      setState((old) => ({ ...old, stopped: true }));
    },
    again: () => setRound(round + 1),
  };
}
