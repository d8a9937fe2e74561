"use strict";

// The page: cards from the data that stands in it, and the filters, whose values stand in the URL's fragment.
// Every text goes into the page as text, never as markup.

(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const CARDS = 30; // so many cards are shown first, and added at the end of the list
  const PRINTED = 200; // so many are printed
  const TARGETS = 50; // so many rows of a card are shown first
  const MORE_TARGETS = 500; // so many are added by a click
  const PENDING = ["delete", "create", "update", "failed", "dropped", "stale", "skipped"]; // `apply` would do them
  const MANY = 5; // so many targets of a command may become one glob
  const NOUNS = { problem: "problem", unmanaged: "object", unfit: "section" };
  const LOST = { delete: "What will be lost", deleted: "What was lost" };

  const by = (id) => document.getElementById(id);
  const targets = data.targets.map((name) => ({ name, words: name.toLowerCase(), path: name.slice(name.indexOf(" ") + 1) }));
  const texts = data.texts.map((text) => text.toLowerCase());
  const cards = data.cards.map((card) => ({ reason: "", remedy: "", fields: [], losses: [], requests: "", sections: [], groups: [], place: 0, ...card }));
  const byId = new Map(cards.map((card) => [card.id, card]));

  const FILTERS = ["kind", "group", "target", "section", "state"];
  const view = { q: "", kind: "", group: "", target: "", section: "", state: "", open: new Set() };
  let shown = []; // what the filters leave: a card and those of its rows that match
  let built = 0; // how many of them are in the page
  let matrix = null;

  // --- Filtering -------------------------------------------------------------------------------------------------

  // All words of a card but those of its rows, put together when they are first looked for.
  function wordsOf(card) {
    card.words ??= [
      card.kind, card.title, card.reason, card.remedy, card.requests, ...card.losses, ...card.fields.flat(),
      ...card.groups.flatMap(({ fields, losses }) => [...fields.flat(), ...losses]),
      ...card.sections.map((section) => data.sections[section]),
    ].join("\n").toLowerCase();
    return card.words;
  }

  // Put together the words of all cards bit by bit, so that the first search is as fast as the others.
  function prepare(from = 0) {
    for (const card of cards.slice(from, from + 1000)) wordsOf(card);
    if (from + 1000 < cards.length) setTimeout(prepare, 0, from + 1000);
  }

  // Return a test of rows: whether a word is in the name of the target, or in what else the row says.
  function rowTest(word) {
    const inTarget = targets.map(({ words }) => words.includes(word));
    const inText = texts.map((text) => text.includes(word));
    return ([target, , about, origin, losses]) => inTarget[target] || inText[about] || inText[origin] || inText[losses];
  }

  function isBelow(group, path) {
    return path === group || path.startsWith(`${group}/`);
  }

  function matches() {
    const { kind, group, target, section, state } = view;
    const words = view.q.toLowerCase().split(/\s+/).filter(Boolean).map((word) => [word, rowTest(word)]);
    const isThere = targets.map(({ name, path }) => (!target || name === target) && (!group || isBelow(group, path)));
    const number = section ? data.sections.indexOf(section) : null;
    // What is about a target as such concerns each of its sections.
    const those = target ? [number, data.sections.indexOf("")] : [number];
    const isMeant = (row) => isThere[row[0]] && (number === null || those.includes(row[1]));
    const isNarrow = Boolean(group || target || section);
    const found = [];
    for (const card of cards) {
      if (kind && card.kind !== kind) continue;
      if (state && (card.state || data.kinds[card.kind].state) !== state) continue;
      if (number !== null && !card.sections.some((each) => those.includes(each))) continue;
      // A word that the card itself does not have must be in its rows.
      const tests = words.filter(([word]) => !wordsOf(card).includes(word)).map(([, test]) => test);
      if (isNarrow) tests.push(isMeant);
      const rows = tests.length ? card.rows.filter((row) => tests.every((test) => test(row))) : card.rows;
      if (rows.length) found.push({ card, rows: rows.length < card.rows.length ? rows : card.rows });
    }
    return found;
  }

  // Take up filters, and show what is left. The matrix marks itself what is chosen in it.
  function applyFilter(changes, isFromMatrix = false) {
    for (const [name, value] of Object.entries(changes)) view[name] = value ?? "";
    show();
    if (!isFromMatrix) markMatrix();
    remember();
  }

  function markMatrix() {
    const orNull = (name) => view[name] || null;
    matrix?.show({ group: orNull("group"), target: orNull("target"), section: orNull("section"), state: orNull("state") });
  }

  // --- The list of cards -----------------------------------------------------------------------------------------

  function show() {
    shown = matches();
    built = 0;
    by("list").replaceChildren();
    addCards(CARDS);
    const all = shown.length === cards.length;
    by("shown").textContent = !cards.length ? "There is nothing to decide."
      : !shown.length ? `${nothing()} There are ${counted(cards.length, "card")} without the filters.`
        : `${all ? "" : `${shown.length.toLocaleString("en")} of `}${counted(cards.length, "card")} shown`;
    showFilters();
  }

  function nothing() {
    const own = Object.values(data.kinds).some(({ state }) => state === view.state);
    return view.state && !own ? `There is nothing to decide where the state is “${view.state}”.` : "No card matches the filters.";
  }

  // Add cards to the end of the list, each below the heading of its kind.
  function addCards(number) {
    for (const each of shown.slice(built, built + number)) {
      const { kind } = each.card;
      if (by("list").lastElementChild?.dataset.kind !== kind) by("list").append(makePart(kind));
      by("list").lastElementChild.append(makeCard(each));
    }
    built = Math.min(built + number, shown.length);
    by("more").hidden = built === shown.length;
    nameMore("Show more: ", " left");
  }

  function nameMore(before, after) {
    by("more").textContent = `${before}${counted(shown.length - built, "card")}${after}`;
  }

  function makePart(kind) {
    const rows = shown.filter(({ card }) => card.kind === kind).flatMap((each) => each.rows);
    const count = make("span", { class: "count" }, amount(kind, rows));
    const title = make("h2", { id: `kind-${kind}` }, data.kinds[kind].heading, " ", count);
    return make("section", { class: "part", "data-kind": kind, "aria-labelledby": title.id }, title);
  }

  // Return how much some rows are about: `40 objects in 12 projects`, `12 projects`.
  function amount(kind, rows) {
    const those = new Set(rows.map(([target]) => target));
    const levels = new Set([...those].map((target) => targets[target].name.split(" ")[0]));
    const noun = levels.size > 1 ? "target" : [...levels][0];
    const places = counted(those.size, noun);
    if (rows.length === those.size) return places;
    return `${counted(rows.length, NOUNS[kind] ?? "change")} in ${places}`;
  }

  function makeCard({ card, rows }) {
    const { id, kind, title } = card;
    const isOne = card.rows.length === 1;
    const all = isOne ? targets[rows[0][0]].name : amount(kind, card.rows);
    const count = rows.length < card.rows.length ? `${amount(kind, rows)} of ${all}` : all;
    const button = make("button", { type: "button", id: `open-${id}`, "aria-expanded": "false", "aria-controls": `in-${id}` },
      make("span", { class: "sign", "aria-hidden": "true" }, data.kinds[kind].sign),
      make("span", { class: "title" }, title), make("span", { class: "count" }, count));
    const inside = make("div", { class: "inside", id: `in-${id}`, hidden: "" });
    const node = make("article", { class: "card", "data-kind": kind, "data-card": id, "aria-labelledby": `open-${id}` },
      make("h3", {}, button), ...summary(card, rows), inside);
    const turn = (open) => {
      if (open && !inside.childElementCount) inside.append(...contents(card, rows));
      inside.hidden = !open;
      button.setAttribute("aria-expanded", String(open));
    };
    button.addEventListener("click", () => {
      const open = inside.hidden;
      view.open[open ? "add" : "delete"](id);
      turn(open);
      remember();
    });
    turn(view.open.has(id));
    return node;
  }

  // What is seen of a card that is closed.
  function summary({ kind, title, reason, remedy, fields, losses, groups, place }, rows) {
    const lines = [];
    if (reason) lines.push(make("p", { class: "reason" }, reason));
    if (remedy) lines.push(make("p", { class: "remedy" }, make("strong", {}, "Fix: "), remedy));
    const lost = losses.map((loss) => make("li", {}, loss));
    if (lost.length) lines.push(make("ul", { class: "losses", "aria-label": LOST[kind] }, ...lost));
    if (fields.length) lines.push(make("p", { class: "brief" }, ...brief(fields)));
    if (groups.length) {
      const found = new Set(rows.map((row) => row[6]));
      const first = [...found].slice(0, 3).flatMap((number) => (number in groups ? [groups[number]] : []));
      if (groups.every((each) => each.title === title)) lines.push(make("p", { class: "brief" }, `${found.size.toLocaleString("en")} different values`));
      else lines.push(make("p", { class: "places" }, first.map((each) => bare(each.title)).join(", "), found.size > 3 ? ` and ${(found.size - 3).toLocaleString("en")} more` : ""));
    }
    if (rows.length > 1) {
      const names = [...new Set(rows.slice(0, 9).map(([target]) => targets[target].path))].slice(0, 3).join(", ");
      lines.push(make("p", { class: "places" }, rows.length > 3 ? `${names} …` : names));
    }
    if (place && !title.includes(data.texts[place])) lines.push(make("p", { class: "asked" }, "Declared in ", lineLink(place)));
    return lines;
  }

  // A title without its verb.
  function bare(title) {
    return title.slice(title.indexOf(" ") + 1);
  }

  function brief(fields) {
    const line = (text) => short(text, 60).replaceAll("\n", " ");
    return fields.slice(0, 4).flatMap(([name, before, after]) => {
      const values = before !== null && after !== null
        ? [make("del", {}, line(before)), " → ", make("ins", {}, line(after))] : [line(before ?? after)];
      return [make("span", { class: "field" }, make("span", { class: "name" }, `${name}: `), ...values), " "];
    }).concat(fields.length > 4 ? [`and ${fields.length - 4} more`] : []);
  }

  // --- An open card ----------------------------------------------------------------------------------------------

  function contents(card, rows) {
    const parts = [];
    if (card.fields.length) parts.push(compare(card));
    parts.push(...(card.groups.length ? listGroups(card, rows) : listTargets(card, rows)));
    if (card.requests) parts.push(make("p", { class: "requests" }, card.requests));
    const actions = make("div", { class: "actions" },
      copyButton("Copy link", () => linkTo(new URLSearchParams({ card: card.id }))));
    if (data.commands !== "none") {
      const command = commandFor([{ card, rows }]);
      actions.append(copyButton("Copy command", () => command), make("code", {}, short(command, 300)));
    }
    return [...parts, actions];
  }

  // The equal changes of a card, the largest first; each opens into its values and targets.
  function listGroups(card, rows) {
    const own = new Map();
    for (const row of rows) own.set(row[6], [...(own.get(row[6]) ?? []), row]);
    const list = make("ul", { class: "groups", "aria-label": "Equal changes" });
    return [list, paged(list, [...own], ([number, some]) => makeGroup(card, card.groups[number], some))];
  }

  function makeGroup(card, group, rows) {
    const name = group.title === card.title ? brief(group.fields) : [bare(group.title)];
    const count = rows.length > 1 ? amount(card.kind, rows) : targets[rows[0][0]].path;
    const details = make("details", {}, make("summary", {}, make("span", { class: "label" }, ...name), " ", make("span", { class: "count" }, count)));
    details.addEventListener("toggle", () => {
      if (details.childElementCount > 1) return;
      if (group.losses.length) details.append(make("ul", { class: "losses" }, ...group.losses.map((loss) => make("li", {}, loss))));
      if (group.fields.length) details.append(compare(group));
      const isOne = new Set(rows.map((row) => row[2])).size === 1;
      details.append(...listTargets(card, isOne ? rows.map(([target, section, , ...rest]) => [target, section, 0, ...rest]) : rows));
    });
    return make("li", {}, details);
  }

  function listTargets(card, rows) {
    const list = make("ul", { class: "targets", "aria-label": "Targets", tabindex: "0" });
    const origins = new Set(rows.map((row) => row[3]));
    const more = paged(list, rows, (row) => makeRow(row, origins.size > 1));
    const [origin] = origins;
    if (origins.size > 1 || !origin) return [list, more];
    return [list, more, make("p", { class: "origin" }, "Declared at ", lineLink(origin))];
  }

  // Fill a list with the first of some things, and return the button that adds more.
  function paged(list, things, build) {
    const more = make("button", { type: "button", class: "more" });
    const add = (number) => {
      const from = list.childElementCount;
      list.append(...things.slice(from, from + number).map(build));
      const left = things.length - list.childElementCount;
      more.textContent = `Show ${Math.min(left, MORE_TARGETS).toLocaleString("en")} of ${left.toLocaleString("en")} more`;
      more.hidden = !left;
    };
    more.addEventListener("click", () => {
      const next = list.childElementCount;
      add(MORE_TARGETS);
      const place = list.children[next].querySelector("summary") ?? list.children[next];
      place.tabIndex = place.matches("summary") ? 0 : -1;
      place.focus();
    });
    add(TARGETS);
    return more;
  }

  // Return a link, or the text alone if there is no address.
  function linked(text, address, attributes = {}) {
    return address ? make("a", { href: address, ...attributes }, text) : make("span", attributes, text);
  }

  function lineLink(origin, attributes) {
    const place = data.texts[origin];
    return linked(place, data.lines[place], attributes);
  }

  function makeRow([target, , label, origin, losses, page], isWhole) {
    const { name } = targets[target];
    const row = make("li", {}, linked(name, data.pages[name], { class: "target" }));
    if (label) row.append(" ", make("span", { class: "label" }, data.texts[label]));
    if (losses) row.append(" ", make("span", { class: "losses" }, data.texts[losses]));
    if (page) row.append(" ", linked("Open page", data.texts[page], { "aria-label": `Open page of ${data.texts[label] || name}` }));
    if (origin && isWhole) row.append(" ", lineLink(origin, { class: "origin" }));
    return row;
  }

  function compare({ fields }) {
    const columns = [["Before", fields.some((field) => field[1] !== null)], ["After", fields.some((field) => field[2] !== null)]]
      .flatMap(([name, has]) => (has ? [name] : []));
    const head = ["Field", ...columns].map((name) => make("th", { scope: "col" }, name));
    const mark = (runs, tag) => runs.map(([text, same]) => (same ? text : make(tag, {}, text)));
    const body = fields.map(([name, before, after]) => {
      let cells = [[before ?? after]];
      if (before !== null && after !== null) {
        const [was, willBe] = compareWords(before, after);
        cells = [mark(was, "del"), mark(willBe, "ins")];
      } else if (columns.length > 1) {
        cells = [[before ?? ""], [after ?? ""]];
      }
      return make("tr", {}, make("th", { scope: "row" }, name),
        ...cells.map((parts, index) => make("td", { "data-label": columns[index].toLowerCase() }, ...parts)));
    });
    return make("table", { class: "fields" }, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body));
  }

  // --- Links and commands ----------------------------------------------------------------------------------------

  // What the filters and the open cards are, as the URL's fragment has it.
  function fragment() {
    const found = new URLSearchParams();
    for (const name of ["q", ...FILTERS]) if (view[name]) found.append(name, view[name]);
    for (const id of view.open) found.append("card", id);
    return found;
  }

  function linkTo(parameters) {
    return `${location.href.split("#")[0]}#${parameters}`;
  }

  const remember = later(150, () => history.replaceState(null, "", linkTo(fragment())));

  // Show what the URL's fragment says.
  function recall() {
    const found = new URLSearchParams(location.hash.slice(1));
    for (const name of ["q", ...FILTERS]) view[name] = found.get(name) ?? "";
    if (!Object.hasOwn(data.kinds, view.kind)) view.kind = "";
    view.open = new Set(found.getAll("card").filter((id) => byId.has(id)));
    by("text").value = view.q;
    show();
    markMatrix();
    const [first] = view.open;
    const place = shown.findIndex(({ card }) => card.id === first);
    if (place < 0) return;
    if (place >= built) addCards(place + 1 - built);
    by(`open-${first}`).scrollIntoView({ block: "center" });
    by(`open-${first}`).focus({ preventScroll: true });
  }

  // Return the command line that does what some cards are about, or that looks at it if nothing of it is to be done.
  //
  // That of a revert finishes or repeats it. It is about whole sections of their targets. It names each target, unless no others can have changes: where the page
  // is about all that the manifests declare (`wide`), and where the command takes up what an apply left undone (`retry`).
  function commandFor(some) {
    const pending = some.filter(isPending);
    const chosen = pending.length ? pending : some;
    const all = cards.map((card) => ({ card, rows: card.rows })).filter((each) => !pending.length || isPending(each));
    const isRetry = data.commands === "retry" && pending.length > 0;
    const isWide = isRetry || data.commands === "wide";
    const words = data.revert.length ? [...data.revert, ...(pending.length ? ["--yes"] : [])]
      : ["reconciler", pending.length ? "apply" : "plan", ...(isRetry ? ["--retry-failed", "report.json"] : [])];
    if (!isWide || chosen.length < all.length || chosen.some(({ card, rows }) => rows !== card.rows)) {
      const rows = chosen.flatMap((each) => each.rows);
      const sections = new Set(rows.map((row) => row[1]));
      const others = isWide ? all.flatMap((each) => each.rows.filter((row) => sections.has(row[1]))) : null;
      for (const glob of globsFor(rows, others)) words.push("--target", glob);
      const names = [...sections].map((section) => data.sections[section]).sort();
      if (!names.includes("")) for (const name of names) words.push("--section", name);
    }
    return words.map(quoted).join(" ");
  }

  function isPending({ card }) {
    return PENDING.includes(card.kind);
  }

  // Return globs for the targets of some rows: `group/**` for groups of which all rows are among them, their own too.
  function globsFor(rows, all) {
    const pathsOf = (some) => [...new Set(some.map(([target]) => targets[target].path))];
    const groupsOf = (path) => [...path.matchAll(/\/|$/g)].map(({ index }) => path.slice(0, index));
    const sizes = (some) => {
      const found = new Map();
      for (const group of pathsOf(some).flatMap(groupsOf)) found.set(group, (found.get(group) ?? 0) + 1);
      return found;
    };
    const own = sizes(rows);
    const whole = all && sizes(all);
    const isWhole = (group) => own.get(group) >= MANY && own.get(group) === whole?.get(group);
    return new Set(pathsOf(rows).map((path) => {
      const group = groupsOf(path).find(isWhole);
      return group === undefined ? asGlob(path) : `${asGlob(group)}/**`;
    }));
  }

  // --- Controls --------------------------------------------------------------------------------------------------

  // Show which filters are set, each with a button that removes it.
  function showFilters() {
    const chosen = FILTERS.filter((name) => view[name]);
    by("chosen").hidden = !chosen.length;
    by("chosen").replaceChildren(...chosen.map((name) => {
      const shown = { kind: data.kinds[view.kind]?.heading, target: view.target, group: `in group ${view.group}` };
      const text = shown[name] ?? `${name} ${view[name]}`;
      const cross = make("span", { "aria-hidden": "true" }, " ×");
      const button = make("button", { type: "button", "aria-label": `Remove the filter ${text}` }, text, cross);
      button.addEventListener("click", () => {
        applyFilter({ [name]: "" });
        by("text").focus();
      });
      return make("li", {}, button);
    }));
    for (const tile of document.querySelectorAll("button.tile")) {
      tile.setAttribute("aria-pressed", String(tile.dataset.kind === view.kind));
    }
    by("section").value = view.section ? `=${view.section}` : "";
  }

  // Turn the numbers of the verdict and the names of the sections into buttons that filter.
  function makeButtons() {
    for (const tile of document.querySelectorAll(".tile")) {
      const { kind } = tile.dataset;
      if (!cards.some((card) => card.kind === kind)) continue;
      const button = make("button", { type: "button", class: "tile", "data-kind": kind, "aria-pressed": "false" }, ...tile.childNodes);
      button.addEventListener("click", () => applyFilter({ kind: view.kind === kind ? "" : kind }));
      tile.replaceWith(button);
    }
    for (const cell of document.querySelectorAll("th[data-section]")) {
      const { section } = cell.dataset;
      if (!section || !data.sections.includes(section)) continue;
      const button = make("button", { type: "button", class: "link" }, ...cell.childNodes);
      button.addEventListener("click", () => {
        applyFilter({ section });
        by("decisions").focus();
      });
      cell.append(button);
    }
    for (const button of document.querySelectorAll("[data-copy]")) {
      button.hidden = false;
      button.addEventListener("click", () => copy(button, button.dataset.copy));
    }
  }

  // --- Keyboard --------------------------------------------------------------------------------------------------

  // Focus the next card, or the one before.
  function move(step) {
    const buttons = () => [...by("list").querySelectorAll(".card h3 button")];
    const card = document.activeElement.closest?.(".card");
    const here = card ? buttons().indexOf(card.querySelector("h3 button")) : step > 0 ? -1 : 0;
    if (here + step >= buttons().length) addCards(CARDS);
    const next = buttons()[Math.max(0, here + step)];
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
  }

  function escape() {
    const card = document.activeElement.closest?.(".card");
    if (document.activeElement === by("text")) {
      by("text").value = "";
      applyFilter({ q: "" });
      by("text").blur();
    } else if (card && view.open.has(card.dataset.card)) {
      const button = card.querySelector("h3 button");
      button.click();
      button.focus();
    }
  }

  function listen() {
    by("text").addEventListener("input", () => applyFilter({ q: by("text").value }));
    by("section").addEventListener("change", () => applyFilter({ section: by("section").value.slice(1) }));
    by("controls").addEventListener("submit", (event) => event.preventDefault());
    by("copy-link").addEventListener("click", () => copy(by("copy-link"), linkTo(fragment())));
    by("copy-command").addEventListener("click", () => copy(by("copy-command"), commandFor(shown)));
    by("ask").addEventListener("click", () => by("help").showModal());
    by("see-fleet").addEventListener("click", () => by("fleet").scrollIntoView());
    document.querySelector(".skip").addEventListener("click", (event) => {
      event.preventDefault(); // the address keeps the filters
      by("decisions").focus();
    });
    by("more").addEventListener("click", () => addCards(CARDS));
    new IntersectionObserver((seen) => {
      if (seen.some((each) => each.isIntersecting) && !by("more").hidden) addCards(CARDS);
    }, { rootMargin: "0px 0px 600px" }).observe(by("more"));
    addEventListener("hashchange", recall);
    addEventListener("beforeprint", () => {
      addCards(Math.max(0, PRINTED - built));
      nameMore("", " more");
    });
    addEventListener("afterprint", () => addCards(0));
    addEventListener("keydown", press);
  }

  const KEYS = {
    "/": () => {
      by("text").focus();
      by("text").select();
    },
    j: () => move(1),
    k: () => move(-1),
    "?": () => by("help").showModal(),
    Escape: escape,
  };

  function press(event) {
    const { key, target } = event;
    if (!Object.hasOwn(KEYS, key) || event.ctrlKey || event.metaKey || event.altKey || by("help").open) return;
    const isTyping = target.matches("input, select, textarea");
    if (key === "Escape" ? isTyping && target !== by("text") : isTyping || !by("keys").checked) return;
    event.preventDefault();
    KEYS[key]();
  }

  if (data.matrix.targets.length > 1) {
    by("fleet").hidden = false;
    by("see-fleet").hidden = false;
    matrix = createMatrix(by("matrix"), data.matrix, (choice) => applyFilter(choice, true));
  }
  if (cards.length) {
    const names = data.sections.filter(Boolean).sort();
    by("section").append(...names.map((name) => make("option", { value: `=${name}` }, name)));
    for (const id of ["controls", "copy-link", "ask"]) by(id).hidden = false;
    by("copy-command").hidden = data.commands === "none";
  }
  makeButtons();
  listen();
  recall();
  setTimeout(prepare, 0);
})();
