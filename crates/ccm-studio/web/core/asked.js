// Requests whose answers a page shows: asked again when what they depend on
// changes, given up when the page goes or someone stops them.
import { useEffect, useRef, useState } from "../vendor/preact.js";
import { aborted, get, post } from "./api.js";

/** Typing asks once it rests for this long. */
const REST = 150;

/**
 * @typedef {object} Asked
 * @property {any} answer the last one
 * @property {any} problem why there is no newer one
 * @property {boolean} stopped
 * @property {() => void} stop
 * @property {() => void} again
 */

/**
 * @param {string | null} path null asks nothing
 * @param {(() => any) | null} body of a POST; null is a GET
 * @param {any[]} deps what the answer depends on
 * @param {{keep?: boolean}} [options] `keep`: the last answer stays until the next one is there
 * @returns {Asked}
 */
export function useAnswer(path, body, deps, { keep = true } = {}) {
  const [state, setState] = useState({ answer: /** @type {any} */ (null), problem: /** @type {any} */ (null), stopped: false });
  const [round, setRound] = useState(0);
  const running = useRef(/** @type {AbortController | null} */ (null));
  useEffect(() => {
    setState((old) => ({ ...old, ...(keep ? {} : { answer: null }), stopped: false }));
    if (path === null) return;
    const controller = new AbortController();
    running.current = controller;
    const ask = () => (body ? post(path, body(), { signal: controller.signal }) : get(path, { signal: controller.signal }))
      .then((answer) => setState({ answer, problem: null, stopped: false }))
      .catch((error) => !aborted(error) && setState((old) => ({ ...old, problem: error })));
    const timer = body ? setTimeout(ask, REST) : void ask();
    return () => {
      clearTimeout(timer ?? undefined);
      controller.abort();
    };
  }, [path, round, ...deps]);
  return {
    ...state,
    stop() {
      running.current?.abort();
      setState((old) => ({ ...old, stopped: true }));
    },
    again: () => setRound(round + 1),
  };
}
