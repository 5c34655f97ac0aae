// Blockquotes that begin with `[!info] Title` are shown with their title.
for (const quote of document.querySelectorAll("blockquote")) {
  const first = quote.querySelector("p");
  const match = first && first.innerHTML.match(/^\[!info\] ([^\n]+)\n/);
  if (!match) continue;
  const title = document.createElement("strong");
  title.textContent = match[1];
  first.innerHTML = first.innerHTML.slice(match[0].length);
  quote.prepend(title);
  quote.classList.add("callout");
}
