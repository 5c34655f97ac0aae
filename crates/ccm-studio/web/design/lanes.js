// Who refers to whom, as lines beside the outline. Resources that refer to
// each other, also by way of others, share a line; lines that would run
// through each other get lanes of their own.

/** More lanes than this are no help; what is beyond shares the last. */
export const MOST_LANES = 3;

/**
 * @typedef {object} Lane
 * @property {number} own the lane of this resource, -1 without relations
 * @property {{lane: number, above: boolean, below: boolean}[]} lines those that pass here
 */

/**
 * The places of what an entry refers to.
 * @param {OutlineEntry[]} outline
 * @returns {number[][]}
 */
export function references(outline) {
  /** @type {Map<string, number>} */
  const places = new Map();
  outline.forEach((entry, index) => {
    for (const name of [entry.name, entry.alias]) {
      const id = name && `${entry.type}#${name}`;
      if (id && !places.has(id)) places.set(id, index);
    }
  });
  return outline.map((entry) => {
    const found = [...entry.require, ...entry.subscribe].map((id) => places.get(id));
    return found.filter((place) => place !== undefined);
  });
}

/**
 * @param {OutlineEntry[]} outline
 * @returns {{rows: Lane[], width: number, refers: number[][]}} `width`: how many lanes there are;
 *   `refers`: the places of what each refers to
 */
export function lanes(outline) {
  const refers = references(outline);
  const parent = outline.map((_, index) => index);
  const find = (/** @type {number} */ at) => {
    let root = at;
    while (parent[root] !== root) {
      parent[root] = parent[/** @type {number} */ (parent[root])] ?? root;
      root = parent[root] ?? root;
    }
    return root;
  };
  refers.forEach((list, index) => {
    for (const other of list) {
      const [a, b] = [find(index), find(other)];
      parent[Math.max(a, b)] = Math.min(a, b);
    }
  });
  /** @type {Map<number, {first: number, last: number, lane: number}>} */
  const groups = new Map();
  outline.forEach((_, index) => {
    const root = find(index);
    const group = groups.get(root);
    if (group) group.last = index;
    else groups.set(root, { first: index, last: index, lane: -1 });
  });
  const drawn = [...groups.values()].filter((group) => group.last > group.first);
  /** @type {number[]} until where each lane is taken */
  const taken = [];
  for (const group of drawn) {
    let lane = taken.findIndex((until) => until < group.first);
    if (lane < 0) lane = Math.min(taken.length, MOST_LANES - 1);
    taken[lane] = Math.max(taken[lane] ?? -1, group.last);
    group.lane = lane;
  }
  /** @type {Lane[]} */
  const rows = [];
  let active = /** @type {typeof drawn} */ ([]);
  let next = 0;
  for (let index = 0; index < outline.length; index += 1) {
    for (let group = drawn[next]; group?.first === index; group = drawn[next]) {
      active.push(group);
      next += 1;
    }
    rows.push({
      own: groups.get(find(index))?.lane ?? -1,
      lines: active.map((group) => ({
        lane: group.lane,
        above: group.first < index,
        below: group.last > index,
      })),
    });
    active = active.filter((group) => group.last > index);
  }
  return { rows, width: taken.length, refers };
}
