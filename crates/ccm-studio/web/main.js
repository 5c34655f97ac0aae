// Begins: takes the link's token, asks for what the page needs, shows it.
import { h, render } from "./vendor/preact.js";
import { ApiError, Gone } from "./core/api.js";
import { register, startKeys } from "./core/commands.js";
import { startTheme } from "./core/prefs.js";
import { format, go, place, startRouter } from "./core/router.js";
import { newManifest, save } from "./core/actions.js";
import { startApply, startPlan } from "./core/runs.js";
import { exchange, refused, takeToken } from "./core/session.js";
import { current, load, studio, unsaved } from "./core/store.js";
import { App } from "./frame/app.js";
import { openHelp } from "./frame/help.js";
import { openPalette } from "./frame/palette.js";
import { PAGES } from "./pages/registry.js";
import { report } from "./ui/toast.js";

async function connect() {
  const token = takeToken(format(place.peek()));
  try {
    if (token && !(await exchange(token))) return;
    await load();
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) return;
    if (!(error instanceof Gone)) report(error, "load the page");
  }
}

startTheme();
// A fresh link in a page that is open: a new key, and the text stays.
startRouter(() => {
  if (!location.hash.startsWith("#token=")) return false;
  void connect();
  return true;
});
startKeys();
register([
  { id: "save", title: "Save", keys: "Mod+S", icon: "save", inText: true, run: () => void save() },
  {
    id: "plan",
    title: "Plan",
    keys: "Mod+Enter",
    icon: "plan",
    inText: true,
    when: () => current.peek()?.isManifest ?? false,
    run: startPlan,
  },
  {
    id: "apply",
    title: "Apply",
    keys: "Mod+Shift+Enter",
    icon: "play",
    inText: true,
    when: () => studio.peek()?.apply_allowed ?? false,
    run: startApply,
  },
  {
    id: "palette",
    title: "Search resources, files, commands",
    keys: "Mod+K",
    inText: true,
    hidden: true,
    run: () => void openPalette(),
  },
  { id: "help", title: "Keyboard and help", keys: "?", icon: "help", run: openHelp },
  { id: "new", title: "New manifest", icon: "plus", run: () => void newManifest() },
  ...PAGES.map((page) => ({
    id: `page-${page.id}`,
    title: page.title,
    keys: `g ${page.key}`,
    group: "Pages",
    hidden: true,
    run: () => go({ page: page.id }),
  })),
]);
addEventListener("beforeunload", (event) => {
  if (unsaved()) event.preventDefault();
});

const root = document.getElementById("app");
if (root) render(h(App, {}), root);
await connect();
if (!studio.peek() && !refused.peek()) {
  // The server went away while the page was loading: it is asked again when it is back.
  const { onReturn } = await import("./core/connection.js");
  onReturn(() => void (studio.peek() ?? connect()));
}
