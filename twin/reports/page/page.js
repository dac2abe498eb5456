"use strict";
(() => {
  const root = document.documentElement;
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // Tables: a row travels with the details below it.
  const pairsOf = body => all(":scope > tr:not(.details)", body).map(row => [
    row, row.nextElementSibling?.classList.contains("details") ? row.nextElementSibling : null]);
  const cellOf = (row, place) => row.cells[row.cells[0].classList.contains("fold") ? place + 1 : place];
  const keyOf = cell => cell.dataset.value !== undefined ? Number(cell.dataset.value) : cell.textContent;
  const compare = (one, other) => typeof one === "number" && typeof other === "number" ? one - other :
    typeof one !== typeof other ? (typeof one === "number" ? -1 : 1) :
    one.localeCompare(other, "en", {numeric: true});

  const sort = button => {
    const head = button.closest("th"), body = button.closest("table").tBodies[0];
    const down = head.getAttribute("aria-sort") === "ascending" ||
      (!head.hasAttribute("aria-sort") && head.classList.contains("number"));
    for (const other of head.parentElement.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const place = Number(button.dataset.column);
    const blank = key => key === "";
    pairsOf(body).map(pair => [keyOf(cellOf(pair[0], place)), pair])
      .sort(([one], [other]) => blank(one) || blank(other) ? blank(one) - blank(other) :
        (down ? -1 : 1) * compare(one, other))
      .forEach(([, pair]) => body.append(...pair.filter(Boolean)));
  };

  const filter = input => {
    const holder = document.getElementById(input.dataset.table);
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const pairs = pairsOf(holder.querySelector("tbody"));
    let shown = 0;
    for (const [row, details] of pairs) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every(word => text.includes(word));
      shown += !row.hidden;
      const open = row.querySelector(".fold button")?.getAttribute("aria-expanded") === "true";
      if (details) details.hidden = row.hidden || !open;
    }
    holder.querySelector(".count").textContent = words.length ? `${shown} of ${pairs.length} rows` : "";
  };

  const fold = button => {
    const open = button.getAttribute("aria-expanded") !== "true";
    button.setAttribute("aria-expanded", open);
    button.closest("tr").nextElementSibling.hidden = !open;
  };

  document.addEventListener("click", event => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.column !== undefined) sort(button);
    else if (button.closest(".fold")) fold(button);
    else if (button.id === "theme") setTheme(root.dataset.theme === "dark" ? "light" : "dark");
  });
  for (const input of all("input[data-table]")) input.addEventListener("input", () => filter(input));

  // Plots: each is drawn as it comes near, so that text can be read and scrolled from the start.
  const narrow = () => root.clientWidth < 560;
  const merge = (base, over) => {
    const made = {...base};
    for (const [name, value] of Object.entries(over))
      made[name] = value && base[name] && typeof value === "object" && !Array.isArray(value) ?
        merge(base[name], value) : value;
    return made;
  };
  const layoutOf = (over, printed = false) => {
    const style = getComputedStyle(root);
    const colour = name => style.getPropertyValue(name).trim();
    const [ink, line, soft, page] = printed ? ["#000", "#ccc", "#fff", "#fff"] :
      [colour("--ink"), colour("--line"), colour("--soft"), colour("--page")];
    const axis = {gridcolor: line, linecolor: line, zerolinecolor: line, tickcolor: line, automargin: true,
      fixedrange: !matchMedia("(pointer: fine)").matches, title: {standoff: 8, font: {size: 12}}};
    const made = merge({
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", autosize: true,
      font: {family: getComputedStyle(document.body).fontFamily, size: narrow() ? 11 : 12, color: ink},
      margin: {l: 8, r: 12, t: 8, b: 36}, xaxis: axis, yaxis: axis, bargap: 0.2, hovermode: "closest",
      legend: {orientation: "h", x: 0, xanchor: "left", y: 1.02, yanchor: "bottom", font: {size: 11}},
      hoverlabel: {bgcolor: soft, bordercolor: line, font: {color: ink}, align: "left"},
      dragmode: matchMedia("(pointer: fine)").matches ? "zoom" : false}, over);
    // Lines and marks that stand for no cause are in the colour of text.
    return JSON.parse(JSON.stringify(made).replaceAll('"ink"', JSON.stringify(ink))
      .replaceAll('"page"', JSON.stringify(page)));
  };
  const PAPER_PX = 690;  // of A4 and Letter between margins; before printing the screen's width is told
  const inked = (data, printed) => {
    const ink = printed ? "#000" : getComputedStyle(root).getPropertyValue("--ink").trim();
    const page = printed ? "#fff" : getComputedStyle(root).getPropertyValue("--page").trim();
    return JSON.parse(JSON.stringify(data).replaceAll('"ink"', JSON.stringify(ink))
      .replaceAll('"page"', JSON.stringify(page)));
  };
  const settings = {displayModeBar: false, responsive: true, showTips: false};
  const held = document.getElementById("plots");
  const plots = held ? JSON.parse(held.textContent) : {};
  const isDrawn = name => document.getElementById(name).dataset.drawn !== undefined;
  // Where there is little room a legend takes many lines; the plot grows by them, to twice a legend
  // at least: Plotly gives one half of the height, and hides the rest behind a bar.
  const stretch = name => {
    const holder = document.getElementById(name);
    const names = plots[name].data.filter(one => one.name && one.showlegend !== false).map(one => one.name);
    const lines = names.some(one => one.length > 15) ? names.length : Math.ceil(names.length / 2);
    holder.dataset.height ??= parseFloat(holder.style.height);
    const height = Number(holder.dataset.height);
    const grows = plots[name].layout.showlegend !== false && narrow() && lines > 2;
    holder.style.height = (grows ? Math.max(height + 24 * (lines - 2), 40 * lines + 20) : height) + "px";
  };
  const draw = async (name, printed) => {
    stretch(name);
    const layout = layoutOf(plots[name].layout, printed);
    const height = parseFloat(document.getElementById(name).style.height);
    await Plotly.react(name, inked(plots[name].data, printed),
      printed ? {...layout, autosize: false, width: PAPER_PX, height} : layout, settings);
    document.getElementById(name).dataset.drawn = "yes";
  };

  const unpack = async () => {
    const text = atob(document.getElementById("plotly").textContent);
    const packed = new Uint8Array(text.length);
    for (let place = 0; place < text.length; place++) packed[place] = text.charCodeAt(place);
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
  };
  const pause = () => new Promise(done => setTimeout(done));
  const told = error => {
    root.dataset.ready = "no";
    document.getElementById("trouble").textContent =
      "This browser cannot draw the figures (" + error.message + "); every table is above.";
  };
  // Those in sight wait in a queue for the library; the page is ready when the first are drawn.
  const queue = [];
  let library = null, running = Promise.resolve();
  const drain = async () => {
    await (library ??= pause().then(unpack));
    while (queue.length) {
      const name = queue.shift();
      if (!isDrawn(name)) {
        await pause();
        await draw(name);
      }
    }
    root.dataset.ready = "yes";
  };
  const watch = () => {
    const observer = new IntersectionObserver(entries => {
      for (const entry of entries) if (entry.isIntersecting) {
        observer.unobserve(entry.target);
        queue.push(entry.target.id);
      }
      running = running.then(drain).catch(told);
    }, {rootMargin: "300px 0px"});
    Object.keys(plots).forEach(name => observer.observe(document.getElementById(name)));
  };

  function setTheme(theme) {
    root.dataset.theme = theme;
    document.getElementById("theme").textContent = theme === "dark" ? "Light" : "Dark";
    Object.keys(plots).filter(isDrawn).forEach(name => draw(name));
  }
  setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  addEventListener("beforeprint", () => {
    all("details").forEach(one => { one.open = true; });
    if (typeof Plotly !== "undefined") Object.keys(plots).forEach(name => draw(name, true));
  });
  addEventListener("afterprint", () => setTheme(root.dataset.theme));
  if (held) watch();
  else root.dataset.ready = "yes";
})();
