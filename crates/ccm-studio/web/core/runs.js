// Plans and runs of this Studio: what starts them, and what they have shown.
import { signal } from "../vendor/preact.js";
import { go } from "./router.js";

/** @type {import("../vendor/preact.js").Signal<any>} the plan or run that is shown */
export const currentRun = signal(null);

/** Plans the text as it stands. */
export function startPlan() {
  go({ page: "plan" });
}

/** Opens the dialog of Apply. */
export function startApply() {
  go({ page: "plan" });
}
