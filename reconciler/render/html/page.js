"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const SIGNS = { create: "+", update: "~", delete: "\u2212" };
  const FEW = 20; // so many changes are open from the beginning
  const PART = 50; // so many rows are laid out together, and the first of them before the page is shown
  const THEN = 250; // so many rows are built or opened at a time
  const LARGEST = 90000; // pairs of words that are compared at most

  const rows = data.rows.map(([own, section, action, label, fields, requests, status, reason], index) => ({
    index, action, label, fields, requests, status, reason, targets: own.map((target) => data.targets[target]),
    target: own.length > 1 ? `${own.length} targets` : data.targets[own[0]], section: data.sections[section], node: null, words: null,
  }));
  const by = (id) => document.getElementById(id);
  const list = by("list");
  const filters = ["target", "section", "action", "status"];
  let shown = [];
  let turn = 0;

  function make(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }

  function brief({ fields }) {
    const line = (text) => (text.length > 40 ? text.slice(0, 39) + "\u2026" : text).replaceAll("\n", " ");
    return fields.map(([name, before, after]) => {
      if (before !== null && after !== null) return `${name}: ${line(before)} \u2192 ${line(after)}`;
      return `${name}: ${line(before ?? after)}`;
    }).join(", ");
  }

  function build(row) {
    const action = make("span", { class: `action ${row.action}`, "data-sign": SIGNS[row.action] }, row.action);
    const label = make("span", { class: "label" }, row.label);
    if (row.status && row.status !== "done") label.append(make("span", { class: "status" }, row.status));
    const details = make("details", {}, make("summary", {}, action, label,
      make("span", { class: "target" }, row.target), make("span", { class: "brief", "aria-hidden": "true" }, brief(row))));
    details.addEventListener("toggle", () => fill(row));
    row.node = make("div", { class: "row", role: "listitem" }, details);
    return row.node;
  }

  function fill(row) {
    const details = row.node.firstChild;
    if (details.childElementCount > 1) return;
    const inside = make("div", { class: "inside" });
    if (row.reason) inside.append(make("p", { class: "why" }, `${row.status}: ${row.reason}`));
    if (row.targets.length > 1) inside.append(make("p", { class: "targets" }, row.targets.join(", ")));
    if (row.fields.length) inside.append(compare(row));
    const requests = row.requests.length ? row.requests.join(", ") : "no request";
    inside.append(make("p", { class: "requests" }, `${row.section} \u00b7 ${requests}`));
    details.append(inside);
  }

  function compare({ action, fields }) {
    const columns = { create: ["After"], update: ["Before", "After"], delete: ["Before"] }[action];
    const head = ["Field", ...columns].map((name) => make("th", { scope: "col", role: "columnheader" }, name));
    const body = fields.map(([name, before, after]) => {
      const cells = before !== null && after !== null ? mark(before, after) : [[before ?? after]];
      return make("tr", { role: "row", class: "fields-row" }, make("th", { scope: "row", role: "rowheader" }, name),
        ...cells.map((parts, index) => make("td", { role: "cell", "data-label": columns[index].toLowerCase() }, ...parts)));
    });
    return make("table", { class: "fields", role: "table" },
      make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, ...head)), make("tbody", { role: "rowgroup" }, ...body));
  }

  // The words of two texts, those that the other has not as <del> and <ins>.
  function mark(before, after) {
    const split = (text) => text.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) ?? [];
    const one = split(before);
    const two = split(after);
    let start = 0;
    while (start < one.length && start < two.length && one[start] === two[start]) start += 1;
    let end = 0;
    while (end < one.length - start && end < two.length - start && one.at(-1 - end) === two.at(-1 - end)) end += 1;
    const kept = common(one.slice(start, one.length - end), two.slice(start, two.length - end));
    const parts = (words, tag, side) => {
      const held = new Set(kept.map((pair) => pair[side] + start));
      const isKept = (index) => index < start || index >= words.length - end || held.has(index);
      return runs(words, isKept).map(([text, same]) => (same ? text : make(tag, {}, text)));
    };
    return [parts(one, "del", 0), parts(two, "ins", 1)];
  }

  // The places of the longest common subsequence; none of texts that differ too much to compare.
  function common(one, two) {
    if (one.length * two.length > LARGEST) return [];
    const width = two.length + 1;
    const best = new Uint32Array((one.length + 1) * width);
    for (let i = one.length - 1; i >= 0; i -= 1) {
      for (let j = two.length - 1; j >= 0; j -= 1) {
        const here = i * width + j;
        best[here] = one[i] === two[j] ? best[here + width + 1] + 1 : Math.max(best[here + width], best[here + 1]);
      }
    }
    const pairs = [];
    for (let i = 0, j = 0; i < one.length && j < two.length;) {
      if (one[i] === two[j]) pairs.push([i++, j++]);
      else if (best[(i + 1) * width + j] >= best[i * width + j + 1]) i += 1;
      else j += 1;
    }
    return pairs;
  }

  function runs(words, isKept) {
    const found = [];
    words.forEach((word, index) => {
      const same = isKept(index);
      if (found.length && found.at(-1)[1] === same) found.at(-1)[0] += word;
      else found.push([word, same]);
    });
    return found;
  }

  const collator = new Intl.Collator(undefined, { numeric: true });
  const RANKS = { create: 0, update: 1, delete: 2 };
  const ORDERS = {
    plan: ["as planned", () => 0],
    target: ["target", (a, b) => collator.compare(a.target, b.target)],
    section: ["section", (a, b) => collator.compare(a.section, b.section)],
    action: ["action", (a, b) => RANKS[a.action] - RANKS[b.action]],
    text: ["text", (a, b) => collator.compare(a.label, b.label)],
  };

  function wordsOf(row) {
    const { targets, section, action, label, status, reason, fields, requests } = row;
    row.words ??= [...targets, section, action, label, status, reason, ...fields.flat(), ...requests].join("\n").toLowerCase();
    return row.words;
  }

  function choose() {
    const wanted = by("text").value.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = filters.map((name) => [name, by(name).value]).filter(([, value]) => value);
    const direction = by("turn").getAttribute("aria-pressed") === "true" ? -1 : 1;
    const [, compared] = ORDERS[by("order").value];
    const holds = (row, name, value) => (name === "target" ? row.targets.includes(value) : row[name] === value);
    shown = rows.filter((row) => chosen.every(([name, value]) => holds(row, name, value.slice(1)))
      && wanted.every((word) => wordsOf(row).includes(word)));
    shown.sort((a, b) => direction * (compared(a, b) || a.index - b.index));
    by("shown").textContent = rows.length === shown.length ? `${rows.length} shown` : `${shown.length} of ${rows.length} shown`;
    show();
  }

  // Put the rows into the list, the first at once and the others bit by bit, so that the page never stands still.
  function show() {
    turn += 1;
    const mine = turn;
    list.replaceChildren();
    add(0, PART);
    const more = (from) => {
      if (mine !== turn || from >= shown.length) return;
      add(from, from + THEN);
      setTimeout(more, 0, from + THEN);
    };
    setTimeout(more, 0, PART);
  }

  // Add rows by parts: the browser lays out those parts that are near, and passes over the others.
  function add(from, to) {
    for (let part = from; part < Math.min(to, shown.length); part += PART) {
      const nodes = shown.slice(part, part + PART).map((row) => row.node ?? build(row));
      list.append(make("div", { class: "part", role: "none" }, ...nodes));
    }
  }

  // Open or close rows bit by bit.
  function toggle(open, from = 0, mine = turn) {
    if (mine !== turn) return;
    for (const row of shown.slice(from, from + THEN)) (row.node ?? build(row)).firstChild.open = open;
    if (from + THEN < shown.length) setTimeout(toggle, 0, open, from + THEN, mine);
  }

  function offer(name, values) {
    const select = by(name);
    select.append(...values.map((value) => make("option", { value: `=${value}` }, value || "whole target")));
    select.closest("label").hidden = values.length < 2;
  }

  function later(milliseconds, task) {
    let timer = 0;
    return () => {
      clearTimeout(timer);
      timer = setTimeout(task, milliseconds);
    };
  }

  function listen() {
    by("text").addEventListener("input", later(120, choose));
    for (const name of [...filters, "order"]) by(name).addEventListener("change", choose);
    by("controls").addEventListener("submit", (event) => event.preventDefault());
    by("controls").addEventListener("reset", () => {
      by("turn").setAttribute("aria-pressed", "false");
      setTimeout(choose, 0);
    });
    by("turn").addEventListener("click", () => {
      by("turn").setAttribute("aria-pressed", String(by("turn").getAttribute("aria-pressed") !== "true"));
      choose();
    });
    by("all").addEventListener("click", () => {
      const open = by("all").textContent === "Open all";
      by("all").textContent = open ? "Close all" : "Open all";
      toggle(open);
    });
    let closed = [];
    addEventListener("beforeprint", () => {
      turn += 1;
      list.replaceChildren();
      add(0, shown.length);
      shown.forEach(fill);
      closed = [...document.querySelectorAll("details:not([open])")];
      for (const details of closed) details.open = true;
    });
    addEventListener("afterprint", () => closed.forEach((details) => { details.open = false; }));
  }

  function link() {
    for (const cell of document.querySelectorAll("[data-section]")) {
      const section = cell.dataset.section;
      if (!data.sections.includes(section)) continue;
      const button = make("button", { type: "button", class: "link", title: "Show its changes" }, ...cell.childNodes);
      button.addEventListener("click", () => {
        by("section").value = `=${section}`;
        choose();
        by("changes").focus();
        by("changes").scrollIntoView();
      });
      cell.append(button);
    }
  }

  if (!rows.length) {
    by("shown").textContent = "There is nothing to change.";
    return;
  }
  offer("target", [...data.targets].sort(collator.compare));
  offer("section", [...data.sections].sort(collator.compare));
  offer("action", Object.keys(SIGNS).filter((action) => rows.some((row) => row.action === action)));
  offer("status", [...new Set(rows.map((row) => row.status))].sort());
  by("order").append(...Object.entries(ORDERS).map(([value, [name]]) => make("option", { value }, name)));
  by("controls").hidden = false;
  listen();
  link();
  choose();
  if (rows.length <= FEW) by("all").click();
})();
