"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const SIGNS = { create: "+", update: "~", delete: "\u2212", problem: "!", unseen: "\u2026" };
  const PART = 40; // so many differences are shown at a time
  const NAMES = ["group", "target", "section", "state"];
  const STATES = { delete: "deletions", problem: "problem" };

  const rows = data.rows.map(([moment, day, age, column, kind, section, text, detail, where, targets, size]) => ({
    moment, day, age, column, kind, section, text, detail, where, size, targets: targets.map((target) => data.targets[target]),
  }));
  const number = new Intl.NumberFormat("en");
  const by = (id) => document.getElementById(id);
  let filter = { group: null, target: null, section: null, state: null };
  let shown = rows;
  let reached = 0;

  function make(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }

  function build(row) {
    const since = make("td", {}, make("time", { datetime: row.moment }, row.day), make("span", { class: "age" }, row.age));
    const what = make("td", {}, make("span", { class: "sign", "aria-hidden": "true" }, SIGNS[row.kind]), make("span", { class: "aside" }, `${row.kind} `),
      make("span", { class: "label" }, row.text), make("span", { class: "section" }, row.section));
    if (row.detail) what.append(make("span", { class: "detail" }, row.detail));
    const where = make("td", {}, row.targets.length === 1 ? named(row.targets[0]) : list(row));
    return make("tr", { "data-kind": row.kind }, since, what, where);
  }

  const pages = new Map(data.targets.map((target, index) => [target, data.pages[index]]));

  function named(target) {
    const page = pages.get(target);
    return page ? make("a", { href: page }, target) : make("bdi", {}, target);
  }

  function list({ where, targets }) {
    const details = make("details", {}, make("summary", {}, where));
    details.addEventListener("toggle", () => {
      if (details.childElementCount < 2) details.append(make("ul", { tabindex: "0", "aria-label": "Targets" }, ...targets.map((target) => make("li", {}, named(target)))));
    });
    return details;
  }

  const pathOf = (target) => target.slice(target.indexOf(" ") + 1);
  const isBelow = (target, group) => pathOf(target) === group || pathOf(target).startsWith(`${group}/`);

  // The part of a row that the filter chooses: with those of its targets that match; null if none does.
  function narrowed(row) {
    const { group, target, section, state } = filter;
    const age = by("age").value;
    if (age && row.column !== Number(age)) return null;
    if (section !== null && row.section && row.section !== section) return null;
    if (state !== null && state !== (STATES[row.kind] ?? "changes")) return null;
    const matches = (each) => (target === null || each === target) && (group === null || isBelow(each, group));
    const targets = row.targets.filter(matches);
    if (targets.length === row.targets.length) return row;
    const where = `${number.format(targets.length)} of ${row.where}`;
    return targets.length ? { ...row, targets, where, size: targets.length } : null;
  }

  function choose() {
    shown = rows.map(narrowed).filter((row) => row !== null);
    reached = 0;
    by("list").replaceChildren();
    more();
    const count = (some) => some.reduce((sum, row) => sum + row.size, 0);
    const all = `${number.format(count(rows))} ${count(rows) === 1 ? "difference" : "differences"}`;
    by("shown").textContent = count(shown) === count(rows) ? all : `${number.format(count(shown))} of ${all}`;
    by("all").hidden = !by("age").value && NAMES.every((name) => filter[name] === null);
  }

  function more() {
    by("list").append(...shown.slice(reached, reached + PART).map(build));
    reached += PART;
    by("more").hidden = reached >= shown.length;
  }

  // The choice stands in the URL's fragment, so that a link leads to it.
  function read() {
    const given = new URLSearchParams(location.hash.slice(1));
    filter = Object.fromEntries(NAMES.map((name) => [name, given.get(name)]));
    by("age").value = String(data.ages.indexOf(given.get("age")));
    if (by("age").selectedIndex < 0) by("age").value = "";
    matrix.show(filter);
    choose();
  }

  function write() {
    const parts = NAMES.filter((name) => filter[name] !== null).map((name) => [name, filter[name]]);
    if (by("age").value) parts.push(["age", data.ages[by("age").value]]);
    history.replaceState(null, "", parts.length ? `#${new URLSearchParams(parts)}` : location.pathname + location.search);
    choose();
  }

  function select(wanted) {
    filter = wanted;
    write();
  }

  const matrix = createMatrix(by("matrix"), data.matrix, select);
  by("controls").hidden = !rows.length;
  by("age").append(...data.ages.map((name, column) => make("option", { value: column }, name)));
  by("age").addEventListener("change", write);
  by("more").addEventListener("click", more);
  by("all").addEventListener("click", () => {
    by("age").value = "";
    select({ group: null, target: null, section: null, state: null });
    matrix.show(filter);
  });
  addEventListener("hashchange", read);
  read();
})();
