// The pages. To add one: a module with a component, and a line here.
import { Data } from "./data.js";
import { Design } from "./design.js";
import { Graph } from "./graph.js";
import { History } from "./history.js";
import { Plan } from "./plan.js";
import { Templates } from "./templates.js";

/**
 * @typedef {object} Page
 * @property {string} id the first part of its address
 * @property {string} title
 * @property {string} icon
 * @property {string} key the letter behind G
 * @property {import("../vendor/preact.js").ComponentType<{}>} view
 */

/** @type {Page[]} */
export const PAGES = [
  { id: "design", title: "Design", icon: "pen", key: "d", view: Design },
  { id: "data", title: "Data", icon: "layers", key: "a", view: Data },
  { id: "templates", title: "Templates", icon: "braces", key: "t", view: Templates },
  { id: "graph", title: "Graph", icon: "graph", key: "g", view: Graph },
  { id: "plan", title: "Plan", icon: "plan", key: "p", view: Plan },
  { id: "history", title: "History", icon: "clock", key: "h", view: History },
];
