//! A browser that looks at pages: Chromium without a window.

use crate::support::machine::{Needs, can_run};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What is asked of a page once its charts are drawn. It is appended to a copy of
/// the page, and answers in an attribute.
const QUESTIONS: &str = r#"<script>
(() => {
  const root = document.documentElement;
  let spun = 0;
  const ask = () => {
    if (!("drawn" in root.dataset) && !("failed" in root.dataset)) {
      // The page's time passes as fast as it waits; this takes real time.
      for (let turn = 0; turn < 1e6; turn++) spun += Math.sqrt(turn);
      return setTimeout(ask, 20);
    }
    const figures = [...document.querySelectorAll("figure")].map((figure) => ({
      name: figure.dataset.chart || figure.dataset.picture,
      rows: Number(figure.dataset.rows),
      marks: figure.querySelectorAll("svg .rows_marks > *").length,
      seen: [...figure.querySelectorAll("svg .rows_marks > *")].filter((mark) => {
        const box = mark.getBoundingClientRect();
        return box.width > 0 || box.height > 0;
      }).length,
    }));
    root.dataset.answers = JSON.stringify({
      figures,
      title: document.title,
      text: document.body.innerText,
      scripts: document.querySelectorAll("body script").length,
      images: document.querySelectorAll("img, iframe, object, link[rel=stylesheet]").length,
      owned: "owned" in window,
      overflow: root.scrollWidth - root.clientWidth,
      paper: getComputedStyle(document.body).backgroundColor,
    });
  };
  ask();
})();
</script>"#;

/// How a page is looked at.
#[derive(Clone, Copy, Default)]
pub(crate) struct Look {
    /// On a small screen.
    pub(crate) phone: bool,
    /// By somebody who prefers dark screens.
    pub(crate) dark: bool,
    /// Where the page's own script does not run.
    pub(crate) no_script: bool,
}

/// Whether there is a browser; says so where there is none.
pub(crate) fn there_is(test: &str) -> bool {
    can_run(test, &[Needs::Tool("chromium")])
}

/// Opens a page, and tells what is in it. Nothing may be said on the console.
#[track_caller]
pub(crate) fn open(page: &Path, look: Look) -> Value {
    let mut html = fs::read_to_string(page).expect("the page was written");
    if look.no_script {
        let (before, _) = html.rsplit_once("<script>").expect("the page has a script");
        html = format!("{before}<script>document.documentElement.dataset.drawn = 0</script>");
    }
    let copy = page.with_extension("asked.html");
    fs::write(&copy, format!("{html}{QUESTIONS}")).expect("its directory can be written");
    let profile = tempfile::tempdir().expect("there is a directory for temporary files");
    let mut command = Command::new("chromium");
    command
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
        ])
        // Time passes as fast as the page lets it, and stops when it is at rest.
        .args([
            "--virtual-time-budget=300000",
            "--dump-dom",
            "--enable-logging=stderr",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(match look.phone {
            true => "--window-size=390,844",
            false => "--window-size=1200,900",
        });
    if look.dark {
        command.arg("--blink-settings=preferredColorScheme=0");
    }
    let output = command
        .arg(format!("file://{}", copy.display()))
        .output()
        .expect("chromium starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let console: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("CONSOLE"))
        .collect();
    assert!(console.is_empty(), "{}: {console:#?}", page.display());
    let dom = String::from_utf8_lossy(&output.stdout);
    let answers = dom
        .split_once("data-answers=\"")
        .and_then(|(_, rest)| rest.split_once('"'))
        .unwrap_or_else(|| panic!("{} was not drawn: {said}", page.display()));
    let answers = answers
        .0
        .replace("&quot;", "\"")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&nbsp;", "\u{a0}")
        .replace("&amp;", "&");
    serde_json::from_str(&answers).unwrap_or_else(|error| panic!("{error}: {answers}"))
}

/// The names of the figures; each has a mark for each row of its data.
#[track_caller]
pub(crate) fn figures(answers: &Value) -> Vec<String> {
    let figures = answers["figures"].as_array().expect("it is a list");
    for figure in figures {
        assert!(figure["rows"].as_u64() > Some(0), "{figure}");
        assert_eq!(figure["marks"], figure["rows"], "{figure}");
    }
    let name = |figure: &Value| figure["name"].as_str().unwrap_or_default().to_owned();
    figures.iter().map(name).collect()
}
