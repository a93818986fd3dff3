// What the page can do better with a script: live updates, keys, exact times.  Everything else works without it.
"use strict";

const EVERY = 5000;
const live = document.getElementById("live");
const find = document.getElementById("find");
const help = document.getElementById("help");
const dialog = document.getElementById("keys");
const times = document.getElementById("times");

// Live: load this address again, and replace the regions that have changed.
const isLive = () => localStorage.getItem("rowcall-live") !== "off";

function busy(region) {
  return region.contains(document.activeElement) || region.querySelector("details[open], dialog[open]");
}

async function refresh() {
  if (!isLive() || document.hidden || !document.querySelector("[data-live]")) return;
  let answer;
  try {
    answer = await fetch(location.href, { headers: { Accept: "text/html" }, credentials: "same-origin" });
  } catch {
    return tell("The server is not responding; what you see may be out of date.");
  }
  if (answer.redirected) return tell("Your session has ended: reload the page to sign in.");
  if (answer.status === 404 || answer.status === 405) return; // a form was refused, and no screen has its address
  if (!answer.ok) return tell("The server could not read this screen; what you see may be old.");
  tell("");
  const next = new DOMParser().parseFromString(await answer.text(), "text/html");
  showTimes(next);
  for (const region of document.querySelectorAll("[data-live]")) {
    const fresh = next.getElementById(region.id);
    if (fresh && fresh.innerHTML !== region.innerHTML && !busy(region)) region.replaceWith(fresh);
  }
  const [old, age] = [document, next].map((page) => page.getElementById("as-of"));
  if (old && age) old.textContent = age.textContent;
}

// Two digits for each part: in some locales, hours before ten have only one digit, and columns would not align.
const exact = { year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" };

// The column of times in the reader's own zone, which its heading names; without a script, it is in UTC.
const ownZone = { ...exact, weekday: "short", second: undefined, timeZoneName: undefined };
for (const time of document.querySelectorAll("time.local")) {
  time.textContent = new Date(time.dateTime).toLocaleString(undefined, ownZone);
}
for (const head of document.querySelectorAll("[data-zone]")) {
  head.textContent = `Your time, ${Intl.DateTimeFormat().resolvedOptions().timeZone}`;
}

function tell(sentence) {
  let note = document.getElementById("stale");
  if (!sentence) return note && note.remove();
  if (!note) {
    note = document.createElement("p");
    note.id = "stale";
    note.className = "note warn";
    note.setAttribute("role", "status");
    document.getElementById("main").prepend(note);
  }
  note.textContent = sentence;
}

function showLive() {
  live.setAttribute("aria-pressed", String(isLive()));
  live.title = isLive() ? "Live updates are on. Click to turn them off on all screens." : "Live updates are off. Click to turn them on.";
}

function toggleLive() {
  localStorage.setItem("rowcall-live", isLive() ? "off" : "on");
  showLive();
  refresh();
}

if (live) {
  live.hidden = help.hidden = false;
  showLive();
  live.addEventListener("click", toggleLive);
  help.addEventListener("click", () => dialog.showModal());
  addEventListener("storage", showLive);
  setInterval(refresh, EVERY);
  // After a form was sent, something is about to change.
  if (new URLSearchParams(location.search).has("done")) [500, 1500].forEach((soon) => setTimeout(refresh, soon));
}

// Exact times: a click shows a time in the reader's own zone, and back; a key and a button do so with all times.
const areExact = () => localStorage.getItem("rowcall-times") === "exact";

function showTime(time, exactly) {
  if (exactly && !time.dataset.words) {
    time.dataset.words = time.textContent;
    time.textContent = new Date(time.dateTime).toLocaleString(undefined, exact);
  } else if (!exactly && time.dataset.words) {
    time.textContent = time.dataset.words;
    delete time.dataset.words;
  }
}

function showTimes(root) {
  for (const time of root.querySelectorAll("time:not(.local)")) showTime(time, areExact());
}

function showAllTimes() {
  showTimes(document);
  if (times) times.setAttribute("aria-pressed", String(areExact()));
}

function toggleTimes() {
  localStorage.setItem("rowcall-times", areExact() ? "relative" : "exact");
  showAllTimes();
}

document.addEventListener("click", (event) => {
  const time = event.target.closest && event.target.closest("time:not(.local)");
  if (time) showTime(time, !time.dataset.words);
});
if (times) times.addEventListener("click", toggleTimes);
addEventListener("storage", showAllTimes);
showAllTimes();

// Keys: / finds, g and a letter opens a screen, l switches live updates, t exact times, ? shows the keys.
let going = false;
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest && event.target.closest("input, textarea, select");
  if (!find || typing || event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
  const room = going && document.querySelector(`.rooms a[data-key="${CSS.escape(event.key)}"]`);
  going = event.key === "g";
  if (room) location.href = room.href;
  else if (event.key === "/") { event.preventDefault(); find.focus(); }
  else if (event.key === "?") dialog.showModal();
  else if (event.key === "l") toggleLive();
  else if (event.key === "t") toggleTimes();
});
