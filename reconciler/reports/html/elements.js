"use strict";

// What the scripts of all pages build pages from: elements, texts that break where they may, commands, and what is copied.
// Every text goes into the page as text, never as markup.

function make(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children.flatMap((child) => (typeof child === "string" ? broken(child) : [child])));
  return node;
}

// Long names break behind a slash or an underscore, and never within a word; a date is one. Screen readers hear a <wbr> as a space.
function broken(text) {
  return text.split(/([0-9]{4}-[0-9]{2}-[0-9]{2})|(?<=[/_])(?=[^/_\s])/).map((part, index) => {
    if (index % 2 === 0) return part;
    const node = document.createElement("span");
    node.className = part ? "date" : "break";
    node.append(part ?? "");
    return node;
  });
}

function counted(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

function short(text, length) {
  return text.length > length ? `${text.slice(0, length - 1)}\u2026` : text;
}

function later(milliseconds, task) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(task, milliseconds);
  };
}

// Return a glob that matches nothing else.
function asGlob(text) {
  return text.replace(/[[*?]/g, "[$&]");
}

function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function copyButton(name, text) {
  const button = make("button", { type: "button" }, name);
  button.addEventListener("click", () => copy(button, text()));
  return button;
}

async function copy(button, text) {
  button.dataset.name ??= button.textContent;
  let said = "Copied";
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    said = copyBySelection(text) ? said : "Not copied";
  }
  button.textContent = said;
  document.getElementById("said").textContent = said;
  setTimeout(() => {
    button.textContent = button.dataset.name;
    document.getElementById("said").textContent = "";
  }, 1500);
}

// Browsers that do not let a page from disk use the clipboard let it copy what is selected.
function copyBySelection(text) {
  const area = make("textarea", { class: "aside" });
  const before = document.activeElement;
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  before.focus();
  return done;
}
