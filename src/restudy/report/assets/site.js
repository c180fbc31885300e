"use strict";
(() => {
  const all = (selector, from = document) => Array.from(from.querySelectorAll(selector));

  function sortable(table) {
    const body = table.tBodies[0];
    all("thead th[data-sort]", table).forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        const sign = down ? -1 : 1;
        const numeric = head.dataset.sort === "number";
        const key = (row) => row.cells[column].dataset.key;
        const rows = all("tr", body).sort((a, b) =>
          sign * (numeric ? Number(key(a)) - Number(key(b)) : key(a).localeCompare(key(b))));
        all("thead th", table).forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        body.append(...rows);
      });
    });
  }

  function filtered(tools, table) {
    const rows = all("tbody tr", table);
    const find = tools.querySelector("[data-find]");
    const picks = all("[data-pick]", tools);
    const count = tools.querySelector("[data-count]");
    const empty = document.querySelector("[data-empty]");
    const text = new Map(rows.map((row) => [row, row.textContent.toLowerCase() + " " + row.dataset.words]));
    function show() {
      const terms = find.value.toLowerCase().split(/\s+/).filter(Boolean);
      const wanted = new Set(picks.filter((p) => p.getAttribute("aria-pressed") === "true").map((p) => p.dataset.pick));
      let shown = 0;
      rows.forEach((row) => {
        const fits = (!wanted.size || wanted.has(row.dataset.verdict)) && terms.every((t) => text.get(row).includes(t));
        row.hidden = !fits;
        shown += fits;
      });
      count.textContent = shown === rows.length ? "" : `${shown} of ${rows.length} papers`;
      empty.hidden = shown > 0;
    }
    find.addEventListener("input", show);
    tools.addEventListener("submit", (event) => event.preventDefault());
    picks.forEach((pick) => pick.addEventListener("click", () => {
      pick.setAttribute("aria-pressed", String(pick.getAttribute("aria-pressed") !== "true"));
      show();
    }));
    empty.querySelector("[data-clear]").addEventListener("click", () => {
      find.value = "";
      picks.forEach((pick) => pick.setAttribute("aria-pressed", "false"));
      show();
      find.focus();
    });
    tools.hidden = false;
  }

  const table = document.querySelector("table[data-sortable]");
  if (table) {
    sortable(table);
    filtered(document.querySelector("[data-tools]"), table);
  }

  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = all("details:not([open])");
    closed.forEach((details) => { details.open = true; });
  });
  window.addEventListener("afterprint", () => closed.forEach((details) => { details.open = false; }));
})();
