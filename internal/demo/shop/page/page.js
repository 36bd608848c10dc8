"use strict";
// Fetches the page every two seconds. If the shop has changed, the new content
// replaces the old content, and the reader's scroll position stays.
const live = document.getElementById("live");

function rows(root) {
  return new Map([...root.querySelectorAll("[data-id]")].map((row) => [row.dataset.id, row.outerHTML]));
}

async function refresh() {
  const old = document.getElementById("shop");
  const response = await fetch("./", { cache: "no-cache" });
  if (!response.ok) throw new Error(String(response.status));
  const next = new DOMParser().parseFromString(await response.text(), "text/html").getElementById("shop");
  live.textContent = live.dataset.lost ? "" : live.textContent;
  delete live.dataset.lost;
  if (next.dataset.revision === old.dataset.revision) return;
  for (const row of old.querySelectorAll(".fresh")) row.removeAttribute("class");
  const before = rows(old);
  let changed = 0;
  for (const row of next.querySelectorAll("[data-id]")) {
    if (before.get(row.dataset.id) === row.outerHTML) continue;
    row.classList.add("fresh");
    changed++;
  }
  old.replaceChildren(...next.childNodes);
  old.dataset.revision = next.dataset.revision;
  live.textContent = changed === 1 ? "One line changed." : changed + " lines changed.";
}

async function watch() {
  try {
    if (!document.hidden) await refresh();
  } catch {
    live.dataset.lost = "yes";
    live.textContent = "The shop does not answer; trying again.";
  }
  setTimeout(watch, 2000);
}
setTimeout(watch, 2000);
