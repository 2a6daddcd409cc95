//! Frame of the HTML page around its content.

use super::{blocks, escape, libraries};
use crate::report::document::DocumentBlock;
use crate::report::run_table;
use crate::report::view::RunView;

const STYLE_SHEET: &str = include_str!("page.css");
const PAGE_SCRIPT: &str = include_str!("page.js");

/// Content security policy: the page may fetch nothing. Vega compiles its expressions and needs
/// `unsafe-eval` for that.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' \
                      'unsafe-eval'; img-src data:";

pub(super) struct HtmlPage {
    title: String,
    body: String,
}

impl HtmlPage {
    pub(super) fn new(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            body: format!(
                "<p class=\"quiet\">diskperf</p>\n<h1>{}</h1>\n",
                escape::escape_text(title)
            ),
        }
    }

    pub(super) fn add_contents(&mut self, sections: impl Iterator<Item = (String, String)>) {
        self.body += "<nav>";
        for (anchor, title) in sections {
            self.body += &format!("<a href=\"#{anchor}\">{}</a> ", escape::escape_text(&title));
        }
        self.body += "</nav>\n";
    }

    /// Begins a section of the page that links lead to.
    pub(super) fn add_section(&mut self, anchor: &str, title: &str) {
        self.body += &format!("<h2 id=\"{anchor}\">{}</h2>\n", escape::escape_text(title));
    }

    pub(super) fn add_part_heading(&mut self, title: &str) {
        self.body += &format!("<h3>{}</h3>\n", escape::escape_text(title));
    }

    /// Writes the facts about a run: caches, drives, amount of work and protocol.
    pub(super) fn add_facts(&mut self, view: &RunView<'_>) {
        for block in run_table::build_heading(view) {
            // The heading is the page's, or the section's.
            match block {
                DocumentBlock::Heading(title) => {
                    self.body +=
                        &format!("<p class=\"quiet\">{}</p>\n", escape::escape_text(&title));
                }
                other => self.add_blocks(&[other]),
            }
        }
    }

    pub(super) fn add_blocks(&mut self, blocks: &[DocumentBlock]) {
        self.body += &blocks::render_blocks(blocks);
    }

    /// Writes blocks that are less important than the content above them.
    pub(super) fn add_remarks(&mut self, blocks: &[DocumentBlock]) {
        self.body += &format!(
            "<div class=\"remarks\">{}</div>\n",
            blocks::render_blocks(blocks)
        );
    }

    /// Writes blocks that are folded until the reader opens them.
    pub(super) fn add_folded_blocks(&mut self, summary: &str, blocks: &[DocumentBlock]) {
        if !blocks.is_empty() {
            let content = blocks::render_blocks(blocks);
            let summary = escape::escape_text(summary);
            self.body += &format!("<details><summary>{summary}</summary>{content}</details>\n");
        }
    }

    pub(super) fn add_paragraph(&mut self, text: &str) {
        self.body += &format!("<p>{}</p>\n", escape::escape_text(text));
    }

    pub(super) fn add_list(&mut self, remarks: &[String]) {
        self.body += &blocks::render_list(remarks);
    }

    pub(super) fn add_html(&mut self, html: &str) {
        self.body += html;
    }

    pub(super) fn finish(self) -> String {
        let Self { title, body } = self;
        let title = escape::escape_text(&title);
        let version = env!("CARGO_PKG_VERSION");
        let libraries: String = libraries::LIBRARIES
            .iter()
            .map(|(name, packed)| {
                let coded = libraries::encode_base64(packed);
                format!("<script type=\"text/plain\" id=\"{name}\">{coded}</script>\n")
            })
            .collect();
        let versions = libraries::VERSIONS.lines();
        let versions: Vec<&str> = versions.filter_map(|line| line.split(' ').next()).collect();
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{CONTENT_SECURITY_POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n{STYLE_SHEET}</style>\n\
             </head>\n<body>\n{body}\
             <details class=\"screen\"><summary class=\"quiet\">Written by diskperf {version}; charts drawn by {}, whose licences these are</summary>\n\
             <pre>{}</pre></details>\n\
             {libraries}<script>\n{PAGE_SCRIPT}</script>\n</body>\n</html>\n",
            escape::escape_text(&versions.join(", ")),
            escape::escape_text(libraries::LICENCES),
        )
    }
}
