// The list of conversations, and the dialogs that rename and delete.

import { fragment } from "./log.js";

const sidebar = document.getElementById("sidebar");
const menu = document.getElementById("menu");

function open(isOpen) {
  menu.setAttribute("aria-expanded", isOpen);
  document.body.classList.toggle("menu-open", isOpen);
  if (isOpen) sidebar.querySelector("a").focus();
}

menu.addEventListener("click", () => open(menu.ariaExpanded !== "true"));
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && menu.ariaExpanded === "true") {
    open(false);
    menu.focus();
  }
});
document.getElementById("chat").addEventListener("pointerdown", (event) => {
  if (!menu.contains(event.target)) open(false);
});

sidebar.addEventListener("click", async (event) => {
  const more = event.target.closest("[data-more]");
  if (!more) return;
  more.disabled = true;
  const content = await fragment(more.dataset.more).catch(() => null);
  if (!content) return void (more.disabled = false);
  const first = content.querySelector("a");
  more.parentElement.replaceWith(content);
  mark();
  first?.focus();
});

/** Read the lists again: a conversation is new, moved up, or has got its title. */
export async function refreshLists() {
  for (const section of sidebar.querySelectorAll("[data-list]")) {
    const content = await fragment(section.dataset.list).catch(() => null);
    if (content) section.querySelector("ul").replaceChildren(content);
  }
  mark();
}

function mark() {
  const current = new URLSearchParams(location.search).get("conversation");
  for (const link of sidebar.querySelectorAll("a[data-id]")) {
    if (link.dataset.id === current) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

for (const button of document.querySelectorAll("[data-opens]")) {
  button.addEventListener("click", () => {
    const dialog = document.getElementById(button.dataset.opens);
    dialog.showModal();
    dialog.querySelector("input:not([type=hidden])")?.select();
  });
}
for (const button of document.querySelectorAll("[data-closes]")) {
  button.addEventListener("click", () => button.closest("dialog").close());
}
