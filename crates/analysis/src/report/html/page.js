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
