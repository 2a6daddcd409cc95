// Unpacks the libraries and draws every chart over its still picture.
"use strict";
(() => {
  const root = document.documentElement;
  const unpack = async (id) => {
    const packed = atob(document.getElementById(id).textContent);
    const bytes = Uint8Array.from(packed, (one) => one.charCodeAt(0));
    const unpacked = new DecompressionStream("gzip");
    const input = unpacked.writable.getWriter();
    // Whatever is wrong with the input, the output fails of it too.
    input.write(bytes).catch(() => {});
    input.close().catch(() => {});
    const script = document.createElement("script");
    script.textContent = await new Response(unpacked.readable).text();
    document.head.append(script);
  };
  // Colours are the page's, so that a change of scheme and a print need no
  // second drawing.
  const lines = { domainColor: "var(--quiet)", gridColor: "var(--faint)", tickColor: "var(--quiet)" };
  const words = { labelColor: "var(--ink)", titleColor: "var(--quiet)", titleFontWeight: "normal" };
  const config = {
    background: null,
    font: "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif",
    axis: { ...lines, ...words, labelLimit: 220, labelFontSize: 11 },
    legend: { ...words, labelLimit: 260, orient: "top", direction: "horizontal", columns: { expr: "width > 520 ? 3 : 1" } },
    header: words,
    title: { color: "var(--ink)" },
    text: { fill: "var(--ink)", fontSize: 11 },
    rule: { stroke: "var(--ink)" },
    view: { stroke: null },
  };
  // A picture of dies shows a part of its time when somebody drags across it.
  const closer = (svg) => {
    const [left, width, across, first, last] = ["left", "width", "across", "from", "until"].map((one) => Number(svg.dataset[one]));
    const axis = svg.querySelector(".axis");
    const { top, bottom } = axis.dataset;
    const make = (name, attributes, text) => {
      const made = document.createElementNS("http://www.w3.org/2000/svg", name);
      for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
      if (text) made.textContent = text;
      return made;
    };
    const show = (from, until) => {
      for (const plot of svg.querySelectorAll(".plot")) {
        plot.setAttribute("viewBox", `${from} 0 ${until - from} ${plot.getAttribute("height")}`);
      }
      for (const words of svg.querySelectorAll(".waits")) {
        const x = (Number(words.dataset.at) - from) / (until - from);
        words.setAttribute("x", left + Math.max(Math.min(width * x, width - words.getComputedTextLength()), 0));
      }
      const ns = (place) => first + (last - first) * place / across;
      const [start, end] = [ns(from), ns(until)];
      const least = Math.max((end - start) / 9, 1);
      const power = 10 ** Math.floor(Math.log10(least));
      const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= least) || 10 * power;
      const [unit, word] = end < 1e6 ? [1e3, "µs"] : end < 1e9 ? [1e6, "ms"] : [1e9, "s"];
      const digits = Math.max(0, -Math.floor(Math.log10(step / unit)));
      const marks = [];
      for (let at = Math.ceil(start / step) * step; at <= end; at += step) {
        const x = left + width * (at - start) / (end - start);
        const words = `${(at / unit).toFixed(digits)} ${word}`;
        marks.push(make("path", { class: "tick", d: `M${x} ${top}V${bottom}` }));
        for (const y of [Number(top) - 6, Number(bottom) + 14]) marks.push(make("text", { class: "quiet", x, y }, words));
      }
      axis.replaceChildren(...marks);
    };
    let [from, until] = [0, across];
    const place = (event) => {
      const box = svg.getBoundingClientRect();
      const x = (event.clientX - box.left) * svg.viewBox.baseVal.width / box.width - left;
      return from + (until - from) * Math.min(Math.max(x / width, 0), 1);
    };
    let begun = null;
    const band = make("rect", { class: "band", y: top, height: bottom - top });
    const drag = (event) => {
      const ends = [begun, place(event)].sort((a, b) => a - b);
      const x = (at) => left + width * (at - from) / (until - from);
      band.setAttribute("x", x(ends[0]));
      band.setAttribute("width", x(ends[1]) - x(ends[0]));
      return ends;
    };
    svg.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "touch" || event.button !== 0) return;
      begun = place(event);
      drag(event);
      svg.append(band);
      svg.setPointerCapture(event.pointerId);
      event.preventDefault();
    });
    svg.addEventListener("pointermove", (event) => {
      if (begun !== null) drag(event);
    });
    svg.addEventListener("pointerup", (event) => {
      if (begun === null) return;
      const ends = drag(event);
      begun = null;
      band.remove();
      if (ends[1] - ends[0] < (until - from) / 200) return;
      [from, until] = ends;
      show(from, until);
    });
    svg.addEventListener("pointercancel", () => {
      begun = null;
      band.remove();
    });
    svg.addEventListener("dblclick", () => {
      [from, until] = [0, across];
      show(from, until);
    });
    svg.closest("figure").querySelector(".closer").hidden = false;
  };
  document.querySelectorAll("svg.dies").forEach(closer);
  const draw = async () => {
    const figures = [...document.querySelectorAll("figure[data-chart]")];
    if (figures.length > 0) {
      for (const library of ["vega", "vega-lite", "vega-embed"]) await unpack(library);
    }
    for (const figure of figures) {
      const place = figure.querySelector(".chart");
      const still = [...place.childNodes];
      const spec = JSON.parse(figure.querySelector("script").textContent);
      try {
        await vegaEmbed(place, spec, { renderer: "svg", actions: false, config });
      } catch (error) {
        // The picture that stands still shows the same.
        place.replaceChildren(...still);
        console.error(error);
      }
    }
    root.dataset.ms = Math.round(performance.now());
    root.dataset.drawn = figures.length;
  };
  requestAnimationFrame(() => setTimeout(() => draw().catch((error) => {
    root.dataset.failed = String(error);
    console.error(error);
  }), 0));
})();
