// The conversation: asks, shows what comes, decides, stops.

import { attach, attached, clearAttached } from "./attachments.js";
import { post } from "./events.js";
import * as log from "./log.js";
import { refreshLists } from "./sidebar.js";
import { words } from "./words.js";

const { ask, decide, stop, messages, page } = document.getElementById("chat").dataset;
const composer = document.getElementById("composer");
const text = document.getElementById("text");
const notice = document.getElementById("notice");
const status = document.getElementById("status");
const answering = document.getElementById("answering");
const stopButton = document.getElementById("stop");
const POLL = 1000; // milliseconds

let running = null; // the AbortController of the turn that this page runs or follows
let stopping = null; // the request that ends it
let key = null; // of the message that is being written: the same for each try to send it

const conversation = () => composer.elements.conversation.value;
const asked = () => `asked:${conversation()}`;

function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function tell(error) {
  notice.textContent = error ? words(error) : "";
  notice.hidden = !error;
}

function setRunning(controller) {
  running = controller;
  answering.hidden = !controller;
  document.getElementById("send").disabled = Boolean(controller);
  stopButton.disabled = !conversation();
  if (controller) status.textContent = "Answering now…";
}

/** Let one turn run, from its request to what the server has stored of it. */
async function run(url, form) {
  const controller = new AbortController();
  setRunning(controller);
  tell(null);
  const show = log.showAnswer();
  log.toEnd();
  try {
    const done = await post(url, form, take, controller.signal);
    await refresh();
    const paused = done.status === "paused";
    status.textContent = paused ? "A tool call waits for your approval." : "Answered.";
  } catch (error) {
    await stopping;
    throw controller.signal.aborted ? { code: "stopped" } : error;
  } finally {
    log.clearRunning();
    setRunning(null);
  }

  function take(name, data) {
    if (name === "started") open(data.conversation_id);
    if (name === "text_delta" || name === "refusal_delta") show(data.text);
    if (name === "tool_call") status.textContent = `Runs ${data.name}…`;
  }
}

/** Have the page be that of a conversation which its first message has opened. */
function open(id) {
  if (conversation() === id) return;
  const question = sessionStorage.getItem(asked());
  sessionStorage.removeItem(asked());
  for (const input of document.querySelectorAll("input[name=conversation]")) input.value = id;
  if (question) sessionStorage.setItem(asked(), question);
  document.getElementById("actions").hidden = false;
  document.getElementById("for")?.remove();
  stopButton.disabled = false;
  history.replaceState(null, "", `${page}?conversation=${encodeURIComponent(id)}`);
  refreshLists();
}

/** Show what is stored by now; return whether a turn is running. */
async function refresh({ keep = false } = {}) {
  const stay = log.isAtEnd();
  const url = `${messages}?conversation=${encodeURIComponent(conversation())}`;
  const content = await log.fragment(url);
  if (!keep) log.clearRunning();
  const shown = log.merge(content);
  document.querySelector("#title bdi").textContent = shown.title;
  document.getElementById("new-title").value = shown.title;
  document.title = `${shown.title} · Support coach`;
  if (stay) log.toEnd();
  return shown.answering === "yes";
}

composer.addEventListener("submit", async (event) => {
  event.preventDefault();
  const question = text.value.trim();
  const files = attached();
  if (running || !(question || files.length)) return;
  key ??= newKey();
  const form = new FormData(composer);
  form.set("key", key);
  for (const file of files) form.append("files", file);
  sessionStorage.setItem(asked(), question);
  text.value = "";
  clearAttached();
  grow();
  log.showQuestion(question, files.map((file) => file.name));
  try {
    await run(ask, form);
    key = null;
    refreshLists();
  } catch (error) {
    if (!(await cameAfterAll(error, question))) giveBack(question, files);
  }
  sessionStorage.removeItem(asked());
  text.focus();
});

/** Put a message that was not answered back where it was written. */
function giveBack(question, files) {
  if (!text.value && !attached().length) {
    text.value = question;
    attach(files);
    grow();
  }
}

/** Say what went wrong; return whether the message was stored all the same. */
async function cameAfterAll({ code, ...error }, question) {
  tell({ code, ...error });
  if (!conversation() || code === "conversation_does_not_exist") return false;
  const before = log.lastQuestion();
  if (code === "conversation_busy") sessionStorage.removeItem(asked()); // another one is answered
  if (code === "conversation_busy" || code === "connection_lost") await follow();
  else await refresh().catch(tell);
  const last = log.lastQuestion();
  const stored = last.id !== before.id && last.text === question;
  if (stored && code === "connection_lost") tell(null);
  if (stored || code === "turn_failed" || code === "stopped") key = null;
  return stored;
}

/** Wait for a turn that runs already, and show what it has led to. */
async function follow() {
  const controller = new AbortController();
  setRunning(controller);
  const question = sessionStorage.getItem(asked());
  if (question) log.showQuestion(question);
  try {
    while ((await refresh({ keep: true })) && !controller.signal.aborted) {
      await new Promise((resolve) => setTimeout(resolve, POLL));
    }
    status.textContent = controller.signal.aborted ? "Stopped." : "Answered.";
    refreshLists();
  } catch (error) {
    tell(error.code ? error : { code: "connection_lost" });
  } finally {
    await stopping;
    sessionStorage.removeItem(asked());
    log.clearRunning();
    setRunning(null);
  }
}

stopButton.addEventListener("click", async () => {
  stopButton.disabled = true;
  stopping = fetch(stop, { method: "POST", body: new FormData(composer) }).catch(() => null);
  running?.abort();
  await stopping;
  stopping = null;
  text.focus();
});

document.getElementById("log").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (running) return;
  const card = event.target;
  const form = new FormData(card, event.submitter);
  for (const button of card.querySelectorAll("button")) button.disabled = true;
  try {
    await run(decide, form);
    refreshLists();
  } catch (error) {
    tell(error);
    await refresh().catch(tell);
    for (const button of card.querySelectorAll("button")) button.disabled = false;
  }
  text.focus();
});

for (const button of document.querySelectorAll("[data-say]")) {
  button.addEventListener("click", () => {
    text.value = button.dataset.say;
    composer.requestSubmit();
  });
}

// Another tab may have gone on meanwhile.
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && !running && conversation()) {
    refresh().then((busy) => busy && !running && follow(), tell);
  }
});

function grow() {
  text.style.height = "auto";
  text.style.height = `${Math.min(text.scrollHeight, 240)}px`;
}

text.addEventListener("input", () => {
  key = null; // it is another message now
  grow();
});
text.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    composer.requestSubmit();
  }
});

log.settle();
log.toEnd();
log.watchEarlier();
if (document.querySelector(".messages")?.dataset.answering === "yes") follow();
