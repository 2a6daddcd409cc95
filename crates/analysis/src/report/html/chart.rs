//! Chart of a report: a Vega-Lite specification with a name and texts.

use super::{escape, still};
use serde_json::{Value, json};

/// Name of the layer that draws one mark for each row of a chart's data.
pub const ROWS_DATASET: &str = "rows";

/// Chart of an HTML report, drawn by Vega-Lite.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Unique name of the chart in a report, from its kind and subject: letters, digits and
    /// hyphens.
    pub name: String,
    /// Title of the chart for the reader.
    pub title: String,
    /// Caption of the chart: its subject, and how to read it.
    pub caption: String,
    /// Vega-Lite specification: complete, with its data, and without the colours of a page. Its
    /// layer [`ROWS_DATASET`] draws one mark for each row of data.
    pub vega_spec: Value,
    /// Whether the chart needs the whole width of a page.
    pub is_wide: bool,
}

impl Chart {
    /// Creates a chart of `rows`; `view` contains its encodings and layers.
    pub(super) fn new(name: &str, title: String, rows: Vec<Value>, view: Value) -> Self {
        let mut spec = json!({
            "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
            "description": title,
            "width": "container",
            "autosize": { "type": "fit-x", "contains": "padding" },
            "data": { "values": rows },
        });
        let (Value::Object(all), Value::Object(view)) = (&mut spec, view) else {
            unreachable!("both are written as objects");
        };
        all.extend(view);
        Self {
            name: name.to_owned(),
            title,
            caption: String::new(),
            vega_spec: spec,
            is_wide: false,
        }
    }

    pub(super) fn with_caption(mut self, caption: &str) -> Self {
        caption.clone_into(&mut self.caption);
        self
    }

    pub(super) fn with_full_width(mut self) -> Self {
        self.is_wide = true;
        self
    }

    /// Counts the rows of data in the chart.
    pub fn row_count(&self) -> usize {
        self.vega_spec["data"]["values"]
            .as_array()
            .map_or(0, Vec::len)
    }

    pub(super) fn render_figure(&self) -> String {
        render_figure_with(
            &self.title,
            &self.caption,
            &format!(
                "<div class=\"chart\">{}</div><script type=\"application/json\">{}</script>",
                still::draw_chart(self),
                escape::escape_json(&self.vega_spec)
            ),
            &format!(
                "data-chart=\"{}\" data-rows=\"{}\"{}",
                escape::escape_text(&self.name),
                self.row_count(),
                if self.is_wide { " class=\"wide\"" } else { "" }
            ),
        )
    }
}

/// Formats an HTML figure with its title and caption; `attributes` and `content` are HTML.
pub(super) fn render_figure_with(
    title: &str,
    caption: &str,
    content: &str,
    attributes: &str,
) -> String {
    format!(
        "<figure {attributes}><figcaption><b>{}</b>{}</figcaption>{content}</figure>\n",
        escape::escape_text(title),
        escape::escape_text(caption)
    )
}

/// Formats charts as HTML figures that stand beside each other where there is room.
pub(super) fn render_figures(charts: &[Chart]) -> String {
    if charts.is_empty() {
        return String::new();
    }
    let all: String = charts.iter().map(Chart::render_figure).collect();
    format!("<div class=\"charts\">\n{all}</div>\n")
}

/// Returns the maximum length of axis labels in pixels: that of a program's title, where there is
/// room.
pub(super) fn label_limit_expression() -> Value {
    json!({ "expr": "windowSize()[0] > 700 ? 340 : 170" })
}

pub(super) fn slugify(words: &str) -> String {
    let mut slug = String::new();
    for character in words.chars() {
        if character.is_ascii_alphanumeric() {
            slug.push(character.to_ascii_lowercase());
        } else if !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_slug_has_nothing_to_escape() {
        assert_eq!(
            super::slugify("<b>seqread layer=null</b> 8K/1K"),
            "b-seqread-layer-null-b-8k-1k"
        );
    }
}
