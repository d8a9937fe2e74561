"use strict";

// The fleet page: the teams by the label that is chosen, and the differences with their filters, whose values stand in the URL's fragment.

(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const SIGNS = { create: "+", update: "~", delete: "\u2212", problem: "!", unseen: "\u2026" };
  const PART = 40; // so many differences are shown at a time
  const PRINTED = 200; // so many are printed
  const CHOICES = ["group", "target", "section", "state"]; // what is chosen in the matrix
  const STATES = { delete: "deletions", problem: "problem" };
  const NONE = "="; // stands before a value of a field of choices, for that may be empty

  const rows = data.rows.map(([moment, day, age, column, id, kind, section, text, detail, where, targets, size]) => ({
    moment, day, age, column, id, kind, section, text, detail, where, size, targets, words: `${kind}\n${section}\n${text}\n${detail}`.toLowerCase(),
  }));
  const targets = data.targets.map((name, index) => ({ name, words: name.toLowerCase(), path: name.slice(name.indexOf(" ") + 1), page: data.pages[index] }));
  const by = (id) => document.getElementById(id);
  const view = { q: "", age: "", by: 0, team: null, difference: "", group: null, target: null, section: null, state: null };
  let shown = rows;
  let reached = 0;

  // --- One difference --------------------------------------------------------------------------------------------

  function build(row) {
    const since = make("p", { class: "when" }, make("time", { datetime: row.moment }, row.day), " ", make("span", { class: "age" }, row.age));
    const label = make("p", { class: "label" }, make("span", { class: "sign", "aria-hidden": "true" }, SIGNS[row.kind]),
      make("span", { class: "aside" }, `${row.kind} `), make("span", { class: "name" }, row.text), make("span", { class: "section" }, row.section));
    const what = make("div", {}, label);
    if (row.detail) what.append(make("p", { class: "detail" }, row.detail));
    const acts = make("div", { class: "acts" }, linkButton("Copy command", () => commandFor(row)), linkButton("Copy link", () => linkTo({ difference: row.id })));
    const where = make("div", { class: "where" }, row.targets.length === 1 ? named(row.targets[0]) : list(row), acts);
    return make("li", { "data-kind": row.kind, "data-id": row.id, tabindex: "-1" }, since, what, where);
  }

  function linkButton(name, text) {
    const button = copyButton(name, text);
    button.classList.add("link");
    return button;
  }

  function named(target) {
    const { name, page } = targets[target];
    return page ? make("a", { href: page }, name) : make("bdi", {}, name);
  }

  function list({ where, targets: own }) {
    const details = make("details", {}, make("summary", {}, where));
    details.addEventListener("toggle", () => {
      if (details.childElementCount > 1) return;
      details.append(make("ul", { tabindex: "0", "aria-label": "Targets" }, ...own.map((target) => make("li", {}, named(target)))));
    });
    return details;
  }

  // Return the command line that looks at a difference again.
  function commandFor({ targets: own, section }) {
    const words = ["reconciler", "plan", ...own.flatMap((target) => ["--target", asGlob(targets[target].path)])];
    return [...words, ...(section ? ["--section", section] : [])].map(quoted).join(" ");
  }

  // --- Which are shown -------------------------------------------------------------------------------------------

  const isBelow = (path, group) => path === group || path.startsWith(`${group}/`);

  // The part of a row that the filters leave: with those of its targets that match; null if none does.
  function narrowed(row, words) {
    const { age, team, group, target, section, state } = view;
    if (age && row.column !== data.ages.indexOf(age)) return null;
    if (section !== null && row.section && row.section !== section) return null;
    if (state !== null && state !== (STATES[row.kind] ?? "changes")) return null;
    const left = words.filter((word) => !row.words.includes(word));
    const own = row.targets.filter((index) => {
      const each = targets[index];
      return (target === null || each.name === target) && (group === null || isBelow(each.path, group))
        && (team === null || data.teams[view.by][index] === team) && left.every((word) => each.words.includes(word));
    });
    if (own.length === row.targets.length) return row;
    const where = own.length > 1 ? `${own.length.toLocaleString("en")} of ${row.where}` : "";
    return own.length ? { ...row, targets: own, where, size: own.length } : null;
  }

  function show() {
    const words = view.q.toLowerCase().split(/\s+/).filter(Boolean);
    shown = rows.map((row) => narrowed(row, words)).filter((row) => row !== null);
    reached = 0;
    by("list").replaceChildren();
    more();
    const count = (some) => some.reduce((sum, row) => sum + row.size, 0);
    const all = counted(count(rows), "difference");
    by("shown").textContent = count(shown) === count(rows) ? all : `${count(shown).toLocaleString("en")} of ${all}`;
    by("all").hidden = !isNarrow();
    mark();
  }

  function isNarrow() {
    return Boolean(view.q || view.age) || [view.team, ...CHOICES.map((name) => view[name])].some((value) => value !== null);
  }

  function more(number = PART) {
    by("list").append(...shown.slice(reached, reached + number).map(build));
    reached = Math.min(reached + number, shown.length);
    by("more").hidden = reached === shown.length;
  }

  // Show everywhere what is chosen: the fields, the teams, their tables, and who lacks a section.
  function mark() {
    by("text").value = view.q;
    by("age").value = view.age;
    by("by").value = String(view.by);
    by("team").value = view.team === null ? "" : NONE + view.team;
    by("section").value = view.section === null ? "" : NONE + view.section;
    for (const part of document.querySelectorAll("[data-division]")) part.hidden = Number(part.dataset.division) !== view.by;
    for (const cell of document.querySelectorAll("th[data-team], th[data-section]")) {
      const isTeam = "team" in cell.dataset;
      const isChosen = isTeam ? cell.dataset.team === view.team : Boolean(cell.dataset.section) && cell.dataset.section === view.section;
      cell.querySelector("button")?.setAttribute("aria-pressed", String(isChosen));
      cell.parentNode.toggleAttribute("data-chosen", isChosen);
    }
  }

  // --- The address -----------------------------------------------------------------------------------------------

  function linkTo(values) {
    return `${location.href.split("#")[0]}#${new URLSearchParams(values)}`;
  }

  function fragment() {
    const found = { q: view.q, by: view.by ? data.labels[view.by] || "group" : "", age: view.age };
    const parts = Object.entries(found).filter(([, value]) => value);
    for (const name of ["team", ...CHOICES]) if (view[name] !== null) parts.push([name, view[name]]);
    return parts;
  }

  const remember = later(150, () => {
    const parts = fragment();
    history.replaceState(null, "", parts.length ? linkTo(parts) : location.href.split("#")[0]);
  });

  // Show what the URL's fragment says.
  function recall() {
    const given = new URLSearchParams(location.hash.slice(1));
    const label = given.get("by");
    const place = data.labels.findIndex((each) => (each || "group") === label);
    Object.assign(view, { q: given.get("q") ?? "", age: data.ages.includes(given.get("age")) ? given.get("age") : "", by: Math.max(place, 0), team: given.get("team") });
    for (const name of CHOICES) view[name] = given.get(name);
    fillTeams();
    matrix.show(view);
    show();
    const number = shown.findIndex(({ id }) => id === given.get("difference"));
    if (number >= 0) {
      more(Math.max(0, number + 1 - reached));
      reach(by("list").children[number]);
    } else if (isNarrow()) {
      by("drift").scrollIntoView();
    }
  }

  function choose(changes, isFromMatrix = false) {
    Object.assign(view, changes);
    show();
    if (!isFromMatrix) matrix.show(view);
    remember();
  }

  // --- Keyboard --------------------------------------------------------------------------------------------------

  function reach(row) {
    row?.focus({ preventScroll: true });
    row?.scrollIntoView({ block: "nearest" });
  }

  function move(step) {
    const list = by("list");
    const row = document.activeElement.closest?.("#list > li");
    const here = row ? [...list.children].indexOf(row) : step > 0 ? -1 : 0;
    if (here + step >= list.children.length) more();
    reach(list.children[Math.max(0, Math.min(here + step, list.children.length - 1))]);
  }

  function turn(open) {
    const details = document.activeElement.closest?.("#list > li")?.querySelector("details");
    if (details) details.open = open ?? !details.open;
  }

  const KEYS = {
    "/": () => {
      by("text").focus();
      by("text").select();
    },
    j: () => move(1),
    k: () => move(-1),
    "?": () => by("help").showModal(),
    Enter: () => turn(),
    Escape: () => {
      if (document.activeElement !== by("text")) return turn(false);
      choose({ q: "" });
      return by("text").blur();
    },
  };

  function press(event) {
    const { key, target } = event;
    if (!Object.hasOwn(KEYS, key) || event.ctrlKey || event.metaKey || event.altKey || by("help").open) return;
    const isTyping = target.matches("input, select, textarea");
    if (key === "Enter" ? !target.matches("#list > li") : key === "Escape" ? isTyping && target !== by("text") : isTyping || !by("keys").checked) return;
    event.preventDefault();
    KEYS[key]();
  }

  // --- Controls --------------------------------------------------------------------------------------------------

  function fillTeams() {
    const names = [...new Set(data.teams[view.by])].sort();
    const options = names.map((name) => make("option", { value: NONE + name }, name || `no ${data.labels[view.by]}`));
    by("team").replaceChildren(make("option", { value: "" }, "all"), ...options);
  }

  // Turn the names of teams and sections that have differences into buttons that filter.
  function makeButtons() {
    for (const cell of document.querySelectorAll("th[data-team], th[data-section]")) {
      const { team, section } = cell.dataset;
      const division = Number(cell.closest("[data-division]")?.dataset.division);
      const has = team === undefined ? section && rows.some((row) => row.section === section) : data.teams[division].includes(team);
      if (!has) continue;
      const button = make("button", { type: "button", class: "link", "aria-pressed": "false" }, ...cell.childNodes);
      button.addEventListener("click", () => {
        const isChosen = button.getAttribute("aria-pressed") === "true";
        choose(team === undefined ? { section: isChosen ? null : section } : { team: isChosen ? null : team });
      });
      cell.append(button);
    }
    for (const button of document.querySelectorAll("[data-copy]")) {
      button.hidden = false;
      button.addEventListener("click", () => copy(button, button.dataset.copy));
    }
  }

  const chosen = (id) => (by(id).value ? by(id).value.slice(NONE.length) : null);
  const matrix = createMatrix(by("matrix"), data.matrix, (choice) => choose(choice, true));
  by("age").append(...data.ages.map((name) => make("option", { value: name }, name)));
  by("section").append(...[...new Set(rows.map((row) => row.section))].filter(Boolean).sort().map((name) => make("option", { value: NONE + name }, name)));
  for (const id of ["controls", "copy-link", "ask"]) by(id).hidden = !rows.length;
  by("by-label").hidden = data.labels.length < 2;
  makeButtons();
  by("text").addEventListener("input", () => choose({ q: by("text").value }));
  by("age").addEventListener("change", () => choose({ age: by("age").value }));
  by("section").addEventListener("change", () => choose({ section: chosen("section") }));
  by("team").addEventListener("change", () => choose({ team: chosen("team") }));
  by("by").addEventListener("change", () => {
    view.by = Number(by("by").value);
    fillTeams();
    choose({ team: null });
  });
  by("controls").addEventListener("submit", (event) => event.preventDefault());
  by("copy-link").addEventListener("click", () => copy(by("copy-link"), linkTo(fragment())));
  by("ask").addEventListener("click", () => by("help").showModal());
  by("more").addEventListener("click", () => more());
  by("all").addEventListener("click", () => choose({ q: "", age: "", team: null, group: null, target: null, section: null, state: null }));
  addEventListener("beforeprint", () => more(Math.max(0, PRINTED - reached)));
  addEventListener("hashchange", recall);
  addEventListener("keydown", press);
  recall();
})();
