// What several places offer: saving, creating, copying.
import { ApiError } from "./api.js";
import { MixedEnds } from "./document.js";
import { current, files, loadFiles, openDraft, studio } from "./store.js";
import { go } from "./router.js";
import { alarm } from "./announce.js";
import { prompt } from "../ui/dialog.js";
import { report, toast } from "../ui/toast.js";

/** A manifest to begin with; it validates. */
export const STARTER = `# What this machine should look like. Each resource is brought to the state
# that it describes, in the order written here.
ccm:
  resources:
    # A file with its content, owner and mode. Remove it, or make it yours.
    - file:
        - /tmp/hello-from-ccm:
            content: |
              Hello from ccm.
            owner: root
            group: root
            mode: "0644"
`;

/** Why a name cannot be that of a new manifest. @param {string} name */
export function nameProblem(name) {
  if (!/\.(ya?ml|json)$/.test(name)) return "The name must end in .yaml, .yml or .json";
  if (
    name.startsWith("/") ||
    name.split("/").some((part) => part === ".." || part === "." || part === "")
  ) {
    return "The name must lead to a place below the directory";
  }
  if (files.peek()?.some((file) => file.path === name)) return "A file of this name exists";
  return null;
}

/** Asks for a name and writes a manifest. */
export async function newManifest() {
  const name = await prompt({
    title: "New manifest",
    label: "File name",
    value: "site.yaml",
    help: `In ${studio.peek()?.directory ?? "the directory"}. Directories that exist may stand before it.`,
    action: "Create",
    check: nameProblem,
  });
  if (name === undefined) return;
  openDraft(name, STARTER);
  await save();
}

/** Saves the file that is shown. @param {{force?: boolean, eol?: "lf" | "crlf"}} [options] */
export async function save(options = {}) {
  const document = current.peek();
  if (!document) return;
  if (studio.peek()?.read_only) {
    toast("This Studio was started with --read-only: nothing can be saved", { kind: "bad" });
    return;
  }
  const name = document.path.peek();
  if (!document.dirty.peek() && !document.draft.peek() && !options.force && !options.eol) {
    toast(`${name} has no changes`, { kind: "info" });
    return;
  }
  try {
    await document.save(options);
    toast(`Saved ${name}`);
    await loadFiles();
  } catch (error) {
    if (error instanceof ApiError && error.code === "changed") {
      alarm(`${name} was changed by someone else. It was not saved.`);
    } else if (error instanceof ApiError && error.code === "exists") await saveAs(name);
    else if (error instanceof MixedEnds) {
      alarm(`${name} has both kinds of line ends. Choose one to save it with.`);
    } else report(error, `save ${name}`);
  }
}

/** @param {string} taken */
async function saveAs(taken) {
  const document = current.peek();
  const name = await prompt({
    title: `${taken} exists`,
    label: "Another name",
    value: taken.replace(/(\.\w+)$/, "-2$1"),
    action: "Save",
    check: nameProblem,
  });
  if (name === undefined || !document) return;
  try {
    await document.save({ path: name });
    go({ file: name }, { replace: true });
    toast(`Saved ${name}`);
    await loadFiles();
  } catch (error) {
    report(error, `save ${name}`);
  }
}

/** @param {string} text @param {string} what */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    toast(`Copied ${what}`);
  } catch (error) {
    report(error, `copy ${what}`);
  }
}

/** @param {string} name @param {string} text @param {string} [type] */
export function download(name, text, type = "text/plain") {
  const link = document.createElement("a");
  const address = URL.createObjectURL(new Blob([text], { type }));
  link.href = address;
  link.download = name.split("/").at(-1) ?? name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
