"use strict";

// The fleet at a glance: a table of targets by sections, with the tree of groups at its side.
//
//   const matrix = createMatrix(container, data, select);
//
// `data` has `targets` ("project acme/api"), `sections`, `states`, and `cells`: one digit for each target and section, row
// by row, which is an index into `states`; and it may have `pages`, the address that each target leads to, or null. When somebody chooses a group, a target, a section or a state, by mouse or by
// keyboard, `select` is called with { group, target, section, state }, each a text or null. `matrix.show(filter)` marks
// such a choice that was made elsewhere. Choosing the same thing again takes the choice back.
//
// Only the rows in sight are in the document, so that 5,000 targets are as fast as 10. Assistive technology gets the
// numbers of all rows from the attributes of a treegrid.
function createMatrix(container, data, select) {
  // Each state with its sign and the name of its style, the worst first: a group shows the worst one below it.
  const STATES = [
    ["deletions", "\u2212", "deletions"], ["problem", "!", "problem"], ["changes", "~", "changes"], ["excepted", "=", "excepted"],
    ["not applicable", "\u2013", "unfit"], ["unmanaged", "?", "unmanaged"], ["in order", "\u2713", "fine"],
    ["not declared", "\u00b7", "none"],
  ];
  const STYLES = STATES.map(([, , style]) => style);
  const NAMES = STATES.map(([name]) => name);
  const URGENT = 4; // so many of the states ask for attention
  const SOME = 40; // groups are open at first as long as no more rows are shown
  const SEARCHED = 12; // so many targets have a field to search them
  const BEYOND = 4; // so many rows are kept above and below those in sight
  const PRINTED = 100; // so many rows are printed at most
  const DEEPEST = 8; // so many steps are indented at most
  const CELL = 48; // so many pixels has a cell at least, see `.is-upright`
  const HEAD = 112; // so many pixels are needed for the name of a section, which is upright else
  const SHARE = 0.45; // the share of the width that names may have
  const ITSELF = "(itself)"; // the row of a group's own settings, below the group
  const NOTHING = { group: null, target: null, section: null, state: null };

  const width = data.sections.length;
  const size = STATES.length;
  const rankOf = data.states.map((name) => NAMES.indexOf(name));
  const stateOf = (target, section) => rankOf[Number(data.cells[target * width + section])];
  const collator = new Intl.Collator(undefined, { numeric: true });
  const number = new Intl.NumberFormat("en");

  // --- The tree: groups by the parts of their paths; targets are its leaves. ---

  function newGroup(path, label) {
    const counts = new Uint32Array(width * size);
    return { path, label, target: null, index: -1, parent: null, children: [], counts, targets: 0, open: false, hit: true };
  }

  function grow() {
    const root = newGroup("", "");
    const groups = new Map([["", root]]);
    const groupAt = (path) => {
      if (!groups.has(path)) {
        const cut = path.lastIndexOf("/");
        const made = newGroup(path, path.slice(cut + 1));
        groups.set(path, made);
        made.parent = groupAt(path.slice(0, Math.max(cut, 0)));
        made.parent.children.push(made);
      }
      return groups.get(path);
    };
    data.targets.forEach((target, index) => {
      const isGroup = target.startsWith("group ");
      const path = target.slice(target.indexOf(" ") + 1);
      const cut = target.startsWith("project ") ? path.lastIndexOf("/") : -1;
      const parent = groupAt(isGroup ? path : path.slice(0, Math.max(cut, 0)));
      const label = isGroup ? ITSELF : cut < 0 ? target : path.slice(cut + 1);
      const leaf = { ...newGroup(null, label), target, index, parent, counts: null, targets: 1 };
      parent.children.push(leaf);
      for (let above = parent; above; above = above.parent) count(above, index);
    });
    return tidy(root);
  }

  function count(group, index) {
    group.targets += 1;
    for (let section = 0; section < width; section += 1) group.counts[section * size + stateOf(index, section)] += 1;
  }

  // Sort what is in a group, and put a group that holds one group alone, or nothing but itself, on one row with that.
  function tidy(group) {
    if (group.path === null) return group;
    group.children = group.children.map(tidy);
    const order = (each) => (each.path !== null ? 1 : each.label === ITSELF ? 0 : 2);
    group.children.sort((a, b) => order(a) - order(b) || collator.compare(a.label, b.label));
    for (const child of group.children) child.parent = group;
    const [only, another] = group.children;
    if (!group.parent || another || (only.path === null && only.label !== ITSELF)) return group;
    only.label = only.path === null ? `${group.label} (group)` : `${group.label}/${only.label}`;
    return only;
  }

  // Call `visit` with each node below one, parents first.
  function walk(node, visit) {
    for (const child of node.children) {
      visit(child);
      walk(child, visit);
    }
  }

  // Open the groups level by level, as long as few rows are shown, and a group that is alone in any case.
  function openSome() {
    let reached = [root];
    let rows = root.children.length;
    while (reached.length) {
      const next = reached.flatMap((node) => node.children.filter((child) => child.children.length));
      const more = next.reduce((sum, node) => sum + node.children.length, 0);
      if (rows + more > SOME && next.length !== 1) return;
      for (const node of next) node.open = true;
      rows += more;
      reached = next;
    }
  }

  const root = grow();
  const nodes = [];
  walk(root, (node) => nodes.push(node));
  const leaves = nodes.filter((node) => node.index >= 0);
  openSome();

  // --- What is shown: the rows, and what the filter is. ---

  let filter = NOTHING;
  let words = [];
  let rows = []; // the nodes in sight, if the window were high enough
  let remembered = null; // which groups were open before anything was looked for
  let active = { node: null, column: 0 }; // what has the focus; no node for the head

  // By their paths, for a group that stands on one row with another has no node of its own.
  const pathOf = ({ path, target }) => path ?? target.slice(target.indexOf(" ") + 1);
  const isIt = (node, group) => pathOf(node) === group && !node.target?.startsWith("project ");
  const isBelow = (node, group) => isIt(node, group) || pathOf(node).startsWith(`${group}/`);

  function isHit(leaf) {
    const name = leaf.target.toLowerCase();
    if (!words.every((word) => name.includes(word))) return false;
    if (filter.state === null) return true;
    const wanted = NAMES.indexOf(filter.state);
    if (filter.section !== null) return stateOf(leaf.index, data.sections.indexOf(filter.section)) === wanted;
    return data.sections.some((_, section) => stateOf(leaf.index, section) === wanted);
  }

  // Find the leaves that are looked for, and the groups above them; without a search, all.
  function look() {
    const searches = words.length > 0 || filter.state !== null;
    if (searches && !remembered) {
      remembered = new Set(nodes.filter((node) => node.open));
      for (const node of nodes) node.open = node.children.length > 0;
    } else if (!searches && remembered) {
      for (const node of nodes) node.open = remembered.has(node);
      remembered = null;
    }
    for (const node of nodes) node.hit = !searches;
    if (searches) {
      for (const leaf of leaves) {
        if (isHit(leaf)) for (let each = leaf; each && !each.hit; each = each.parent) each.hit = true;
      }
    }
    flatten();
  }

  function flatten() {
    rows = [];
    const add = (node, level) => {
      const shown = node.children.filter((child) => child.hit);
      shown.forEach((child, index) => {
        Object.assign(child, { level, position: index + 1, siblings: shown.length, row: rows.length });
        rows.push(child);
        if (child.open) add(child, level + 1);
      });
    };
    add(root, 1);
    if (active.node && rows[active.node.row] !== active.node) active = { node: rows[0] ?? null, column: active.column };
    const found = leaves.filter((leaf) => leaf.hit).length;
    const all = `${number.format(leaves.length)} ${leaves.length === 1 ? "target" : "targets"}`;
    status.textContent = found === leaves.length ? all : `${number.format(found)} of ${all}`;
    grid.setAttribute("aria-rowcount", rows.length + 1);
    empty.hidden = rows.length > 0;
    const holdsFocus = grid.contains(document.activeElement);
    for (const row of drawn.values()) row.remove();
    drawn.clear();
    draw(holdsFocus);
  }

  // --- Drawing: the head once, rows when they come into sight. ---

  const drawn = new Map();
  const search = make("input", {
    type: "search", class: "matrix-search", "aria-label": "Find targets", placeholder: "Find targets", autocomplete: "off", spellcheck: "false",
  });
  const opener = make("button", { type: "button", class: "link" }, "Open all");
  const closer = make("button", { type: "button", class: "link" }, "Close all");
  const legend = make("div", { class: "matrix-legend", role: "group", "aria-label": "States" });
  const status = make("span", { class: "matrix-status", role: "status" });
  const empty = make("p", { class: "matrix-empty", hidden: "" }, "No target matches.");
  const head = make("div", { role: "row", class: "matrix-row matrix-head", "aria-rowindex": "1" });
  const body = make("div", { role: "rowgroup", class: "matrix-body" });
  const grid = make("div", { role: "treegrid", class: "matrix-grid", "aria-label": "Targets by section", "aria-colcount": width + 1 },
    make("div", { role: "rowgroup", class: "matrix-top" }, head), body);
  const scroll = make("div", { class: "matrix-scroll" }, grid);
  const chips = STATES.map(([name, sign, style], rank) => {
    const total = make("span", { class: "matrix-total" });
    const chip = make("button", { type: "button", class: "matrix-chip", "aria-pressed": "false" },
      make("span", { class: `matrix-tile is-${style}`, "data-text": sign }), ` ${name} `, total);
    chip.addEventListener("click", () => choose({ ...filter, state: filter.state === name ? null : name }));
    chip.hidden = !rankOf.some((each, digit) => each === rank && data.cells.includes(digit));
    legend.append(chip);
    return { chip, total };
  });

  // A cell of a row; the first column holds the names of the targets.
  function part(role, style, column, attributes, ...children) {
    return make("div", { role, class: style, "aria-colindex": column + 1, "data-column": column, tabindex: "-1", ...attributes }, ...children);
  }

  function drawHead() {
    head.append(part("columnheader", "matrix-name", 0, {}, "Target"));
    data.sections.forEach((section, index) => {
      head.append(part("columnheader", "matrix-section", index + 1, {}, make("span", {}, section)));
    });
  }

  function drawRow(node) {
    const place = { "aria-level": node.level, "aria-posinset": node.position, "aria-setsize": node.siblings, "aria-rowindex": node.row + 2 };
    const row = make("div", { role: "row", class: "matrix-row", "data-row": node.row, ...place });
    row.style.setProperty("--at", node.row);
    row.style.setProperty("--level", Math.min(node.level - 1, DEEPEST));
    const isGroup = node.children.length > 0;
    const name = part("rowheader", "matrix-name", 0, { title: node.target ?? `group ${node.path}` }, make("bdi", {}, node.label));
    const page = data.pages?.[node.index];
    if (page) name.append(make("a", { class: "matrix-link", href: page, tabindex: "-1", "aria-label": `Open ${node.target}` }, "\u2197"));
    if (isGroup) {
      row.setAttribute("aria-expanded", node.open);
      row.classList.add("is-group");
      name.prepend(make("span", { class: "matrix-twisty", "aria-hidden": "true" }));
      name.append(make("span", { class: "matrix-number" }, number.format(node.targets)));
    }
    row.append(name, ...data.sections.map((_, section) => (isGroup ? groupCell(node, section) : leafCell(node, section))));
    return row;
  }

  function cell(section, heard, ...children) {
    const text = make("span", { class: "aside" }, heard);
    return part("gridcell", "matrix-cell", section + 1, { title: `${data.sections[section]}: ${heard}` }, text, ...children);
  }

  function leafCell(node, section) {
    const [name, sign, style] = STATES[stateOf(node.index, section)];
    return cell(section, name, make("span", { class: `matrix-tile is-${style}`, "data-text": sign }));
  }

  // The states in a group that ask for attention, the worst first, or else the worst; and a bar with the shares of all.
  function groupCell(node, section) {
    const counts = node.counts.subarray(section * size, (section + 1) * size);
    const present = STATES.map((_, rank) => rank).filter((rank) => counts[rank]);
    const urgent = present.filter((rank) => rank < URGENT);
    const shown = urgent.length ? urgent : present.slice(0, 1);
    const heard = present.map((rank) => `${number.format(counts[rank])} ${NAMES[rank]}`).join(", ");
    const bar = make("span", { class: "matrix-bar", "aria-hidden": "true" }, ...present.map((rank) => {
      const share = make("span", { class: `is-${STYLES[rank]}` });
      share.style.flexGrow = counts[rank];
      return share;
    }));
    const numbers = shown.map((rank) => {
      const text = `${STATES[rank][1]}\u2009${number.format(counts[rank])}`;
      return make("span", { class: `matrix-count is-${STYLES[rank]}`, "data-text": text });
    });
    return cell(section, heard, make("span", { class: "matrix-counts" }, ...numbers), bar);
  }

  const depthOf = (node) => (node.parent === root ? 0 : Math.min(1 + depthOf(node.parent), DEEPEST));
  const lengthOf = (node) => node.label.length + 2 * depthOf(node);
  const longest = nodes.reduce((most, node) => (lengthOf(most) >= lengthOf(node) ? most : node), nodes[0] ?? newGroup("", ""));
  let height = 0; // of a row, in pixels
  let isPrinting = false;

  // Names are never cut: where the longest would leave little room for the cells, it stands above them.
  function measure() {
    const name = body.appendChild(make("div", { class: "matrix-longest" }, longest.label));
    name.style.setProperty("--level", longest.parent ? depthOf(longest) : 0);
    const space = name.getBoundingClientRect().width;
    name.remove();
    const isStacked = space > SHARE * scroll.clientWidth || space + CELL * width > scroll.clientWidth;
    grid.classList.toggle("is-stacked", isStacked);
    grid.classList.toggle("is-upright", scroll.clientWidth - (isStacked ? 0 : space) < HEAD * width);
    grid.style.setProperty("--longest", `${Math.ceil(space)}px`);
    const probe = body.appendChild(make("div", { class: "matrix-row" }));
    height = probe.getBoundingClientRect().height || 32;
    probe.remove();
  }

  function draw(holdsFocus = grid.contains(document.activeElement)) {
    body.style.setProperty("--rows", isPrinting ? Math.min(rows.length, PRINTED) : rows.length);
    const top = scroll.scrollTop;
    const first = isPrinting ? 0 : Math.max(0, Math.floor(top / height) - BEYOND);
    const last = isPrinting ? PRINTED : Math.ceil((top + scroll.clientHeight) / height) + BEYOND;
    const wanted = new Set(rows.slice(first, last));
    if (active.node && rows[active.node.row] === active.node) wanted.add(active.node);
    for (const [node, row] of drawn) {
      if (!wanted.has(node)) {
        row.remove();
        drawn.delete(node);
      }
    }
    // In the order of the rows, which is the order in which they are read out.
    let next = body.firstChild;
    for (const node of [...wanted].sort((a, b) => a.row - b.row)) {
      const row = drawn.get(node) ?? drawRow(node);
      if (row === next) next = next.nextSibling;
      else body.insertBefore(row, next);
      if (!drawn.has(node)) mark(node, row);
      drawn.set(node, row);
    }
    activate(holdsFocus);
  }

  // --- Marks of what is chosen. ---

  function mark(node, row) {
    const inGroup = filter.group === null || isBelow(node, filter.group);
    const isTarget = filter.target === null || node.target === filter.target;
    const isGroup = filter.group !== null && node.path === filter.group;
    const isChosen = isGroup || (filter.target !== null && isTarget);
    row.classList.toggle("is-dim", !(inGroup && isTarget));
    for (const each of row.children) {
      const column = Number(each.dataset.column);
      const isSection = column > 0 && data.sections[column - 1] === filter.section;
      const isOther = filter.state !== null && column > 0 && node.index >= 0 && NAMES[stateOf(node.index, column - 1)] !== filter.state;
      each.classList.toggle("is-column", isSection);
      each.classList.toggle("is-other", isOther);
      setChosen(each, isChosen && (filter.section === null ? !column : isSection));
    }
  }

  function setChosen(each, isChosen) {
    each.classList.toggle("is-chosen", isChosen);
    if (isChosen) each.setAttribute("aria-selected", "true");
    else each.removeAttribute("aria-selected");
  }

  function markAll() {
    for (const [node, row] of drawn) mark(node, row);
    for (const each of head.children) setChosen(each, filter.section !== null && data.sections[each.dataset.column - 1] === filter.section);
    const totals = new Array(size).fill(0);
    for (const leaf of leaves) {
      if (filter.target !== null && leaf.target !== filter.target) continue;
      if (filter.group !== null && !isBelow(leaf, filter.group)) continue;
      data.sections.forEach((name, section) => {
        if (filter.section === null || filter.section === name) totals[stateOf(leaf.index, section)] += 1;
      });
    }
    chips.forEach(({ chip, total }, rank) => {
      total.textContent = number.format(totals[rank]);
      chip.disabled = !totals[rank] && filter.state !== NAMES[rank];
      chip.setAttribute("aria-pressed", filter.state === NAMES[rank]);
    });
  }

  // --- Choosing: by mouse, touch or keyboard. ---

  function choose(wanted) {
    narrow(wanted);
    select({ ...filter });
  }

  function chooseCell(node, column) {
    const section = column ? data.sections[column - 1] : null;
    const wanted = { group: null, target: null, section, state: filter.state };
    if (node) Object.assign(wanted, node.target === null ? { group: node.path } : { target: node.target });
    if (!node && !column) return;
    const isSame = ["group", "target", "section"].every((name) => filter[name] === wanted[name]);
    choose(isSame ? { ...NOTHING, state: filter.state } : wanted);
  }

  function show(wanted) {
    const { group, target } = filter;
    narrow(wanted);
    if (filter.target !== null && filter.target !== target) reveal(leaves.find((leaf) => leaf.target === filter.target));
    else if (filter.group !== null && filter.group !== group) reveal(nodes.find((node) => isBelow(node, filter.group)));
  }

  function narrow(wanted) {
    const before = filter;
    filter = Object.fromEntries(Object.keys(NOTHING).map((name) => [name, wanted[name] ?? null]));
    if (!NAMES.includes(filter.state)) filter.state = null;
    if (!data.sections.includes(filter.section)) filter.section = null;
    if (filter.state !== before.state || (filter.state !== null && filter.section !== before.section)) look();
    markAll();
  }

  // Open the groups above a node and bring it into sight.
  function reveal(node) {
    if (!node?.hit) return;
    let isOpen = true;
    for (let above = node.parent; above !== root; above = above.parent) {
      isOpen &&= above.open;
      above.open = true;
    }
    if (!isOpen) flatten();
    scroll.scrollTop = node.row * height - scroll.clientHeight / 2;
    bring(node);
  }

  function bring(node) {
    const top = node.row * height;
    const space = scroll.clientHeight - head.parentNode.getBoundingClientRect().height;
    if (top < scroll.scrollTop) scroll.scrollTop = top;
    else if (top + height > scroll.scrollTop + space) scroll.scrollTop = top + height - space;
    draw();
  }

  function toggle(node, open) {
    node.open = open;
    flatten();
  }

  // --- The keyboard: one cell can be reached by Tab, the arrow keys lead from it to all others. ---

  function partOf({ node, column }) {
    return (node ? drawn.get(node) : head)?.children[column];
  }

  function activate(takesFocus) {
    for (const each of grid.querySelectorAll("[tabindex='0']")) each.tabIndex = -1;
    const chosen = partOf(active) ?? head.firstChild;
    for (const each of [chosen, ...chosen.parentNode.querySelectorAll(".matrix-link")]) each.tabIndex = 0;
    if (takesFocus && chosen !== document.activeElement) chosen.focus({ preventScroll: true });
  }

  function move(node, column) {
    active = { node, column: Math.min(Math.max(column, 0), width) };
    if (node) bring(node);
    activate(true);
    partOf(active).scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  function press(event) {
    if (event.altKey || event.metaKey || event.target.matches(".matrix-link")) return;
    const { node, column } = active;
    const at = node ? node.row : -1;
    const row = (index) => rows[Math.min(Math.max(index, 0), rows.length - 1)] ?? null;
    const page = Math.max(1, Math.floor(scroll.clientHeight / height) - 2);
    const isOpenable = node && !column && node.children.length > 0;
    const actions = {
      ArrowDown: () => move(row(at + 1), column),
      ArrowUp: () => move(at > 0 ? row(at - 1) : null, column),
      ArrowRight: () => (isOpenable && !node.open ? toggle(node, true) : move(node, column + 1)),
      ArrowLeft: () => {
        if (isOpenable && node.open) toggle(node, false);
        else if (column || !node) move(node, column - 1);
        else if (node.parent !== root) move(node.parent, 0);
      },
      Home: () => (event.ctrlKey ? move(row(0), column) : move(node, 0)),
      End: () => (event.ctrlKey ? move(row(rows.length), column) : move(node, width)),
      PageDown: () => move(row(at + page), column),
      PageUp: () => move(row(at - page), column),
      Enter: () => chooseCell(node, column),
      " ": () => (isOpenable ? toggle(node, !node.open) : chooseCell(node, column)),
    };
    if (!Object.hasOwn(actions, event.key) || (event.ctrlKey && !["Home", "End"].includes(event.key))) return;
    event.preventDefault();
    event.stopPropagation();
    actions[event.key]();
  }

  function click(event) {
    const clicked = event.target.closest("[data-column]");
    if (!clicked || event.target.matches(".matrix-link")) return;
    const holder = clicked.closest("[data-row]");
    const node = holder ? rows[holder.dataset.row] : null;
    const column = Number(clicked.dataset.column);
    active = { node, column };
    activate(true);
    if (event.target.closest(".matrix-twisty")) {
      toggle(node, !node.open);
      return;
    }
    if (node && !column && node.children.length && !node.open) toggle(node, true);
    chooseCell(node, column);
  }

  function openAll(open) {
    for (const node of nodes) node.open = open && node.children.length > 0;
    flatten();
  }

  function listen() {
    scroll.addEventListener("scroll", () => draw(), { passive: true });
    grid.addEventListener("keydown", press);
    grid.addEventListener("click", click);
    search.addEventListener("input", () => {
      words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      scroll.scrollTop = 0;
      look();
    });
    opener.addEventListener("click", () => openAll(true));
    closer.addEventListener("click", () => openAll(false));
    new ResizeObserver(() => {
      measure();
      draw();
    }).observe(scroll);
    const print = (prints) => () => {
      isPrinting = prints;
      draw();
    };
    addEventListener("beforeprint", print(true));
    addEventListener("afterprint", print(false));
  }

  container.classList.add("matrix");
  grid.style.setProperty("--sections", width);
  search.hidden = leaves.length < SEARCHED;
  opener.hidden = closer.hidden = leaves.length === nodes.length;
  const tools = make("div", { class: "matrix-tools" }, search, make("span", { class: "matrix-buttons" }, opener, closer), status);
  container.append(tools, legend, scroll, empty);
  drawHead();
  measure();
  look();
  if (rows.length) active = { node: rows[0], column: 0 };
  activate(false);
  markAll();
  listen();
  return { show };
}
