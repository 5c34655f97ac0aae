// Says things to those who listen instead of look: once, and politely.

/** @param {string} id @param {string} text */
function say(id, text) {
  const region = document.getElementById(id);
  if (!region) return;
  // The same words again are only spoken if the region was empty in between.
  region.textContent = "";
  requestAnimationFrame(() => {
    region.textContent = text;
  });
}

/** Results of checks, plans, saves. @param {string} text */
export const announce = (text) => say("polite", text);

/** What must not be missed: a save that failed. @param {string} text */
export const alarm = (text) => say("assertive", text);
