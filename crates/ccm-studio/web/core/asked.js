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

/** @typedef {{message: string, hint?: string | undefined, details?: Api.Error}} Problem */

/**
 * `answer`: the last one; `problem`: why there is no newer one.
 * @template T
 * @typedef {{answer: T | null, problem: Problem | null} & Stoppable} Asked
 */

/**
 * The answer of a GET.
 * @template {keyof Api.Get} P
 * @param {P | null} path null asks nothing
 * @param {unknown[]} deps what the answer depends on
 * @param {{keep?: boolean}} [options] `keep`: the last answer stays until the next one is there
 * @returns {Asked<Api.Get[P]>}
 */
export function useGet(path, deps, options) {
  return useAsked(path === null ? null : (by) => get(path, by), 0, [path, ...deps], options);
}

/**
 * The answer of a POST.
 * @template {keyof Api.Post} P
 * @param {P | null} path null asks nothing
 * @param {() => unknown} body
 * @param {unknown[]} deps what the answer depends on
 * @returns {Asked<Api.Post[P]>}
 */
export function usePost(path, body, deps) {
  return useAsked(path === null ? null : (by) => post(path, body(), by), REST, [path, ...deps]);
}

/**
 * An answer about the text of a file as it stands, with the chosen facts.
 * @template {keyof Api.Post} P
 * @param {P} path
 * @param {OpenFile | null | undefined} file null asks nothing
 * @returns {Asked<Api.Post[P]>}
 */
export function useAnswerAbout(path, file) {
  const choice = facts.value;
  const body = () => ({ path: file?.path.peek(), ...(choice ? { facts: choice } : {}) });
  return useAsked(file ? (by) => file.ask(path, file.editor.doc, body(), by) : null, REST, [
    path,
    file,
    file?.revision.value,
    choice,
  ]);
}

/**
 * @template T
 * @param {((by: {signal: AbortSignal}) => Promise<T>) | null} ask
 * @param {number} rest how long to wait before it is asked
 * @param {unknown[]} deps
 * @param {{keep?: boolean}} [options]
 * @returns {Asked<T>}
 */
function useAsked(ask, rest, deps, { keep = true } = {}) {
  const [state, setState] = useState({
    answer: /** @type {T | null} */ (null),
    problem: /** @type {Problem | null} */ (null),
    stopped: false,
  });
  const [round, setRound] = useState(0);
  const running = useRef(/** @type {AbortController | null} */ (null));
  useEffect(() => {
    setState((old) => ({ ...old, ...(keep ? {} : { answer: null }), stopped: false }));
    if (!ask) return;
    const controller = new AbortController();
    running.current = controller;
    const begin = () =>
      ask({ signal: controller.signal })
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
