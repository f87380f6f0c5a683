// Files that go with the next message: picked, pasted or dropped, with a preview.

const list = document.getElementById("files");
const picker = document.getElementById("attach");
const text = document.getElementById("text");
let files = [];

const size = (bytes) => (bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);

export function attached() {
  return files;
}

export function attach(more) {
  for (const file of more) {
    files.push(file);
    list.append(preview(file));
  }
}

export function clearAttached() {
  files = [];
  for (const image of list.querySelectorAll("img")) URL.revokeObjectURL(image.src);
  list.replaceChildren();
}

/** Tell that the message is another one now. */
function changed() {
  text.dispatchEvent(new Event("input"));
  text.focus();
}

function preview(file) {
  const item = document.createElement("li");
  item.className = "file";
  if (/^image\/(png|jpeg|gif|webp)$/.test(file.type)) {
    const image = document.createElement("img");
    image.src = URL.createObjectURL(file);
    image.alt = "";
    item.append(image);
  }
  const name = document.createElement("bdi");
  name.textContent = file.name;
  const small = document.createElement("small");
  small.textContent = size(file.size);
  const remove = document.createElement("button");
  remove.type = "button";
  remove.className = "plain";
  remove.textContent = "×";
  remove.ariaLabel = `Remove ${file.name}`;
  remove.addEventListener("click", () => {
    files = files.filter((each) => each !== file);
    item.remove();
    changed();
  });
  item.append(name, small, remove);
  return item;
}

picker.addEventListener("change", () => {
  attach(picker.files);
  picker.value = "";
  changed();
});

text.addEventListener("paste", (event) => {
  if (event.clipboardData.files.length) {
    event.preventDefault();
    attach(event.clipboardData.files);
    changed();
  }
});

const main = document.getElementById("chat");
main.addEventListener("dragover", (event) => event.preventDefault());
main.addEventListener("drop", (event) => {
  event.preventDefault();
  attach(event.dataTransfer.files);
  changed();
});
