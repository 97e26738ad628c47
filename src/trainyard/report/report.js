"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const element = (id) => document.getElementById(id);
  const shown = data.policies.map(() => true);
  const chosen = { classes: "gpus", paint: "job", fair: "slowdown", policy: 0 };

  // Names come from the user; the plots would read markup in them.
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colour = (policy) => css(`--c${policy.colour}`);

  function short(value) {
    const size = Math.abs(value);
    if (size >= 99.95) return Math.round(value).toLocaleString("en");
    if (size >= 9.995) return value.toFixed(1);
    return size >= 0.0995 ? value.toFixed(2) : String(Number(value.toPrecision(2)));
  }

  function human(seconds) {
    const size = Math.abs(seconds);
    if (size === 0) return "0 s";
    if (size < 1) return short(seconds * 1000) + " ms";
    if (size < 100) return short(seconds) + " s";
    if (size < 3600) return short(seconds / 60) + " min";
    if (size < 172800) return short(seconds / 3600) + " h";
    return short(seconds / 86400) + " d";
  }

  function axis(extra) {
    return Object.assign({
      gridcolor: css("--line"), linecolor: css("--line"), zeroline: false, automargin: true,
      tickfont: { size: 12 },
    }, extra);
  }

  function layout(extra) {
    return Object.assign({
      font: { family: getComputedStyle(document.body).fontFamily, color: css("--ink"), size: 13 },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: { l: 56, r: 14, t: 26, b: 46 },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--soft"), activecolor: css("--accent") },
      hovermode: "closest", showlegend: false, height: 360, uirevision: "keep",
      hoverlabel: {
        bgcolor: css("--card"), bordercolor: css("--soft"), align: "left", namelength: -1,
        font: { color: css("--ink"), size: 13 },
      },
    }, extra);
  }

  const title = (text) => ({ text, standoff: 10, font: { size: 13 } });
  const percent = (extra) => axis(Object.assign({ tickformat: ".0%", range: [0, 1.03], fixedrange: true }, extra));

  function durations(extra) {
    return axis(Object.assign({
      type: "log", tickvals: data.ticks.map((t) => t[0]), ticktext: data.ticks.map((t) => t[1]),
    }, extra));
  }

  function line(policy, i, extra) {
    return Object.assign({
      type: "scatter", mode: "lines", name: plain(policy.name), visible: shown[i],
      line: { color: colour(policy), dash: policy.dash, width: 2, shape: "hv" },
    }, extra);
  }

  function drawJct() {
    const traces = data.policies.map((p, i) => line(p, i, {
      x: p.jct.x, y: p.jct.y, text: p.jct.x.map(human),
      hovertemplate: "%{y:.1%} of the jobs within %{text}",
    }));
    return [traces, layout({
      xaxis: durations({ title: title("completion time") }),
      yaxis: percent({ title: title("jobs completed") }),
    })];
  }

  // Boxes stand side by side within their class; hidden policies leave no gap.
  function drawClasses() {
    const { labels, boxes } = data.classes[chosen.classes];
    const visible = data.policies.map((_, i) => i).filter((i) => shown[i]);
    const slot = 0.8 / Math.max(visible.length, 1);
    const traces = visible.flatMap((i, place) => {
      const found = boxes[i].map((box, k) => ({ box, k, x: k - 0.4 + (place + 0.5) * slot })).filter(({ box }) => box);
      return [classBoxes(data.policies[i], found, Math.min(slot, 0.3) * 0.7), classMeans(data.policies[i], found, labels)];
    });
    return [traces, layout({
      height: 380, boxmode: "overlay", uirevision: chosen.classes,
      xaxis: axis({
        tickvals: labels.map((_, k) => k), ticktext: labels, range: [-0.5, labels.length - 0.5], fixedrange: true,
        showgrid: false, tickfont: { size: 11 }, tickangle: 0,
      }),
      yaxis: durations({ title: title("completion time") }),
    })];
  }

  function classBoxes(policy, found, width) {
    const column = (k) => found.map(({ box }) => box[k]);
    return {
      type: "box", orientation: "v", x: found.map(({ x }) => x), width, lowerfence: column(1), q1: column(2),
      median: column(3), q3: column(4), upperfence: column(5), boxpoints: false, hoverinfo: "skip",
      line: { color: colour(policy), width: 1.5 },
    };
  }

  function classMeans(policy, found, labels) {
    const describe = ({ box, k }) => `<b>${plain(policy.name)}</b>, ${labels[k].replace("<br>", ", ")}` +
      `<br>mean ${human(box[6])}, median ${human(box[3])}<br>middle half ${human(box[2])} to ${human(box[4])}` +
      `<br>90% from ${human(box[1])} to ${human(box[5])}`;
    return {
      type: "scatter", mode: "markers", x: found.map(({ x }) => x), y: found.map(({ box }) => box[6]),
      marker: { symbol: "diamond", size: 7, color: colour(policy), line: { width: 1, color: css("--card") } },
      text: found.map(describe), hovertemplate: "%{text}<extra></extra>",
    };
  }

  function drawTime(key, yaxis, hover) {
    const scale = data.unit.seconds;
    const traces = data.policies.map((p, i) => line(p, i, {
      x: p[key].t.map((t) => t / scale), y: p[key].v, line: { color: colour(p), dash: p.dash, width: 1.6, shape: "hv" },
      text: p[key].t.map(human), hovertemplate: hover,
    }));
    // A fixed margin keeps the two time axes in line.
    return [traces, layout({
      height: 300, margin: { l: 76, r: 14, t: 26, b: 46 }, xaxis: axis({ title: title(`time (${data.unit.name})`) }),
      yaxis: Object.assign(yaxis, { automargin: false }),
    })];
  }

  const drawQueue = () => drawTime("queue", axis({ title: title("jobs waiting"), rangemode: "tozero", fixedrange: true }),
    "%{y:,} waiting at %{text}");
  const drawUtilization = () => drawTime("utilization", percent({ title: title("GPUs in use") }),
    "%{y:.1%} in use at %{text}");

  const FAIR = {
    slowdown: ["completion time / run time alone", "times its run time alone",
      "How many times longer a job took than it would have alone on the cluster, waiting included. " +
      "A line that rises at once at 1 hardly delays anyone; a long way to the right are the jobs that suffer most."],
    fairness: ["completion time / completion time with an equal share", "times its fair time",
      "Completion time against that with an equal share of the cluster at all times. Left of 1 a job did better " +
      "than with its own share; to the right of 1 it paid for others."],
  };

  function drawFair() {
    const [label, unit, caption] = FAIR[chosen.fair];
    element("fair-caption").textContent = caption;
    const traces = data.policies.map((p, i) => line(p, i, {
      x: p[chosen.fair].x, y: p[chosen.fair].y, hovertemplate: `%{y:.1%} of the jobs within %{x:.3~g} ${unit}`,
    }));
    const one = { type: "line", x0: 1, x1: 1, y0: 0, y1: 1, yref: "paper", line: { color: css("--soft"), width: 1, dash: "dot" } };
    return [traces, layout({
      shapes: [one], xaxis: axis({ type: "log", title: title(label), dtick: "D2", tickformat: "~g", exponentformat: "none" }),
      yaxis: percent({ title: title("jobs") }), uirevision: chosen.fair,
    })];
  }

  const sizeFill = (gpus) => data.colours.sizes[Math.min(Math.ceil(Math.log2(Math.max(gpus, 1))), data.colours.sizes.length - 1)];
  const tenantFill = (number) => (number < 0 ? data.colours.other : data.colours.fills[number]);
  const PAINT = {
    job: (job) => data.colours.fills[job[1] % data.colours.fills.length],
    tenant: (job) => tenantFill(job[3]),
    size: (job) => sizeFill(job[2]),
  };

  function ganttKey() {
    const entries = {
      job: () => [],
      tenant: () => data.gantt.tenants.map((name, i) => [tenantFill(i), name]).concat([[data.colours.other, "others"]]),
      size: () => data.colours.sizes.map((fill, i) => [fill, i < 2 ? String(i + 1) :
        i < data.colours.sizes.length - 1 ? `${2 ** (i - 1) + 1}-${2 ** i}` : `over ${2 ** (i - 1)}`]),
    }[chosen.paint]();
    element("gantt-key").replaceChildren(...entries.map(([fill, name]) => {
      const entry = document.createElement("span");
      const box = document.createElement("i");
      box.style.background = fill;
      entry.append(box, name);
      return entry;
    }));
  }

  function ganttHover(job, node, gpus, start, end) {
    const who = job[3] >= 0 ? ` of ${plain(data.gantt.tenants[job[3]])}` : "";
    return `<b>${plain(job[0])}</b>${who}<br>${gpus} GPU${gpus === 1 ? "" : "s"} on ${plain(node)}` +
      (job[2] ? ` (asked for ${job[2]} in all)` : "") +
      `<br>${human(start)} to ${human(end)}<br>for ${human(end - start)}`;
  }

  function drawGantt() {
    const g = data.gantt, bars = g.bars[chosen.policy], scale = g.unit.seconds;
    const [from, to] = g.window;
    const node = (low) => g.bands.find((band) => low + 0.5 > band[1] && low + 0.5 < band[1] + band[2])[0];
    const jobs = bars.job.map((j) => g.jobs[j]);
    const few = bars.job.length <= 400;
    ganttKey();
    const start = bars.start.map((s) => Math.max(s, from)), end = bars.end.map((e) => Math.min(e, to));
    const trace = {
      type: "bar", orientation: "h", base: start.map((s) => s / scale), x: end.map((e, i) => (e - start[i]) / scale),
      y: bars.low.map((low, i) => low + bars.lanes[i] / 2), width: bars.lanes.map((n) => n - 0.08),
      marker: { color: jobs.map(PAINT[chosen.paint]), line: { width: few ? 1 : 0.4, color: css("--card") } },
      text: few ? jobs.map((job) => plain(job[0])) : undefined, textposition: few ? "inside" : "none",
      insidetextanchor: "middle", textangle: 0, constraintext: "inside", textfont: { color: "#1c2430", size: 10 }, cliponaxis: true,
      hovertext: jobs.map((job, i) => ganttHover(job, node(bars.low[i]), bars.gpus[i], bars.start[i], bars.end[i])),
      hovertemplate: "%{hovertext}<extra></extra>",
    };
    const bands = g.bands.map(([, low, gpus]) => ({
      type: "rect", layer: "below", xref: "paper", x0: 0, x1: 1, y0: low, y1: low + gpus, line: { width: 0 }, fillcolor: css("--idle"),
    }));
    return [[trace], layout({
      height: Math.min(Math.max(g.top * 6, 220), 980) + 60, barmode: "overlay", shapes: bands, uniformtext: { mode: "hide", minsize: 9 },
      xaxis: axis({ title: title(`time (${g.unit.name})`), range: [from / scale, to / scale], showgrid: false }),
      yaxis: axis({
        tickvals: g.bands.map(([, low, gpus]) => low + gpus / 2), ticktext: g.bands.map(([name]) => plain(name)),
        range: [-0.5, g.top + 0.5], showgrid: false, tickfont: { size: 11 },
      }),
    })];
  }

  const PLOTS = {
    jct: drawJct, classes: drawClasses, queue: drawQueue, utilization: drawUtilization, gantt: drawGantt, fair: drawFair,
  };
  // Some versions of the library offer to upload the chart: nothing may leave this page.
  const CONFIG = {
    responsive: true, displaylogo: false, showTips: false, showSendToCloud: false, plotlyServerURL: "",
    modeBarButtonsToRemove: ["select2d", "lasso2d", "zoomIn2d", "zoomOut2d", "autoScale2d"],
  };
  const draw = (id) => Plotly.react(element(id), ...PLOTS[id](), CONFIG);
  const drawAll = (ids) => ids.forEach(draw);

  function tieTimeAxes() {
    const pair = ["queue", "utilization"];
    pair.forEach((id, i) => element(id).on("plotly_relayout", (change) => {
      const other = element(pair[1 - i]);
      const auto = change["xaxis.autorange"];
      const range = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
      if (!auto && range[0] === undefined) return;
      // Setting what is already set would echo between the two for ever.
      if (auto ? other.layout.xaxis.autorange : String(other.layout.xaxis.range) === String(range)) return;
      Plotly.relayout(other, auto ? { "xaxis.autorange": true } : { "xaxis.range[0]": range[0], "xaxis.range[1]": range[1] });
    }));
  }

  function wireChips() {
    const chips = [...document.querySelectorAll(".chip")];
    const update = () => {
      chips.forEach((chip, i) => chip.setAttribute("aria-pressed", String(shown[i])));
      drawAll(["jct", "classes", "queue", "utilization", "fair"]);
    };
    chips.forEach((chip, i) => {
      chip.addEventListener("click", () => { shown[i] = !shown[i]; update(); });
      chip.addEventListener("dblclick", () => {
        const alone = shown.every((on, k) => on === (k === i));
        shown.forEach((_, k) => { shown[k] = alone || k === i; });
        update();
      });
    });
  }

  function wirePicks() {
    document.querySelectorAll(".pick").forEach((group) => {
      const { plot, key } = group.dataset;
      const buttons = [...group.querySelectorAll("button")];
      const mark = () => buttons.forEach((b) => b.setAttribute("aria-pressed", String(b.value === chosen[key])));
      buttons.forEach((b) => b.addEventListener("click", () => { chosen[key] = b.value; mark(); draw(plot); }));
      mark();
    });
  }

  function wireGantt() {
    const select = element("gantt-policy");
    data.policies.forEach((policy, i) => select.add(new Option(policy.name, i)));
    select.addEventListener("change", () => { chosen.policy = Number(select.value); draw("gantt"); });
    element("gantt-caption").textContent = data.gantt.caption;
    document.querySelector("button[value=tenant]").hidden = data.gantt.tenants.length < 2;
  }

  function wireTable(table) {
    const heads = [...[...table.tHead.rows].pop().cells], body = table.tBodies[0];
    heads.forEach((head, column) => head.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const value = (row) => Number(row.cells[column].dataset.value);
      const missing = (v) => Number.isNaN(v);
      const order = (a, b) => missing(a) - missing(b) || (missing(a) ? 0 : up ? a - b : b - a);
      body.append(...[...body.rows].sort((a, b) => order(value(a), value(b))));
    }));
  }

  document.querySelectorAll("table.sorts").forEach(wireTable);
  wireGantt();
  wirePicks();
  wireChips();
  drawAll(Object.keys(PLOTS));
  tieTimeAxes();
  dark.addEventListener("change", () => drawAll(Object.keys(PLOTS)));
})();
