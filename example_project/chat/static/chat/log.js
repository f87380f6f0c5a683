// The messages that are shown: pages of them from the server, and the turn that runs.

const log = document.getElementById("log");
const welcome = document.getElementById("welcome");

export async function fragment(url) {
  const response = await fetch(url);
  if (response.redirected) throw { code: "signed_out" };
  if (response.status === 404) throw { code: "conversation_does_not_exist" };
  if (!response.ok) throw { code: "internal_error" };
  const holder = document.createElement("template");
  holder.innerHTML = await response.text();
  return holder.content;
}

/** Put the newest page in: what is there already is replaced, the rest follows. */
export function merge(content) {
  const fresh = content.querySelector(".messages");
  const shown = log.querySelector(".messages");
  const overlaps = [...fresh.children].some(({ id }) => id && document.getElementById(id));
  if (!shown || (!overlaps && fresh.querySelector("article"))) {
    shown?.remove();
    log.append(fresh);
  } else {
    for (const article of fresh.querySelectorAll("article")) {
      const old = document.getElementById(article.id);
      if (!old) shown.append(article);
      else if (old.dataset.state !== article.dataset.state) old.replaceWith(article);
    }
    Object.assign(shown.dataset, fresh.dataset);
  }
  settle();
  return fresh.dataset;
}

/** Put an earlier page before the first message, and leave what is read where it is. */
async function showEarlier(button) {
  if (button.disabled) return;
  button.disabled = true;
  log.setAttribute("aria-busy", "true");
  const content = await fragment(button.dataset.earlier).catch(() => null);
  if (content) {
    const height = log.scrollHeight - log.scrollTop;
    const focused = document.activeElement === button;
    button.replaceWith(...content.querySelector(".messages").children);
    settle();
    log.scrollTop = log.scrollHeight - height;
    watchEarlier();
    if (focused) (log.querySelector(".earlier") ?? log).focus({ preventScroll: true });
  } else {
    button.disabled = false;
  }
  log.removeAttribute("aria-busy");
}

const seen = new IntersectionObserver(
  (entries) => entries.filter((each) => each.isIntersecting).forEach((each) => showEarlier(each.target)),
  { root: log, rootMargin: "200px 0px 0px" },
);

export function watchEarlier() {
  seen.disconnect();
  const button = log.querySelector(".earlier");
  if (button && log.scrollHeight > log.clientHeight) seen.observe(button);
}

log.addEventListener("click", (event) => {
  const button = event.target.closest(".earlier");
  if (button) showEarlier(button);
});

function message(role, heading) {
  const article = document.createElement("article");
  article.className = `message ${role} running`;
  const title = document.createElement("h2");
  title.className = "visually-hidden";
  title.textContent = heading;
  article.append(title);
  welcome.hidden = true;
  log.append(article);
  return article;
}

/** Show a question that is not stored yet. */
export function showQuestion(text, files = []) {
  const article = message("user", "You said");
  if (text) {
    const bubble = document.createElement("div");
    bubble.className = "bubble";
    bubble.dir = "auto";
    bubble.textContent = text;
    article.append(bubble);
  }
  for (const name of files) {
    const chip = document.createElement("span");
    chip.className = "file";
    chip.textContent = name;
    article.append(chip);
  }
  toEnd();
}

/** Return what takes the pieces of an answer that is coming. */
export function showAnswer() {
  const article = message("assistant", "The coach says");
  article.hidden = true;
  log.setAttribute("aria-busy", "true"); // it is read out when it is whole
  const text = document.createElement("div");
  text.className = "prose streaming";
  text.dir = "auto";
  article.append(text);
  return (piece) => {
    const stay = isAtEnd();
    article.hidden = false;
    text.append(piece);
    if (stay) toEnd();
  };
}

/** Remove what was shown of the turn that ran: it is stored by now, or it never will be. */
export function clearRunning() {
  for (const article of log.querySelectorAll(".running")) article.remove();
  log.removeAttribute("aria-busy");
}

/** Return the last question that is stored. */
export function lastQuestion() {
  const last = [...log.querySelectorAll(".messages .user")].at(-1);
  return { id: last?.id, text: last?.querySelector(".bubble")?.textContent ?? "" };
}

export function isAtEnd() {
  return log.scrollHeight - log.scrollTop - log.clientHeight < 80;
}

export function toEnd() {
  log.scrollTop = log.scrollHeight;
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const calendar = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });

/** Say times as this place does, and let wide tables be scrolled by keyboard. */
export function settle() {
  const today = calendar.format(new Date());
  for (const time of log.querySelectorAll("time:not([title])")) {
    const when = new Date(time.dateTime);
    const day = calendar.format(when);
    time.title = when.toLocaleString();
    time.textContent = day === today ? clock.format(when) : `${day}, ${clock.format(when)}`;
  }
  for (const table of log.querySelectorAll("table")) {
    if (table.scrollWidth > table.clientWidth) table.tabIndex = 0;
  }
}
