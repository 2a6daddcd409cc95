//! These fail when a place drifts from what it was given, and when a message shows more
//! of a line than a reader can take.

use super::*;
use std::sync::Arc;

fn text(content: &str) -> Arc<Text> {
    Arc::new(Text::new("file".to_owned(), content.to_owned()))
}

#[test]
fn columns_count_characters_and_lines_end_as_windows_ends_them() {
    let text = text("größe = 1\r\nüber = 2\r\n");
    let place = Place::new(&text, 21..22);
    assert_eq!(
        (place.written(), place.to_string().as_str()),
        ("2", "file:2:8")
    );
    let end = Place::new(&text, 9..13);
    assert_eq!((end.line_number(), end.line().byte_range), (1, 9..11));
}

#[test]
fn a_span_is_clipped_to_the_text_and_to_whole_characters() {
    let text = text("größe");
    assert_eq!(Place::new(&text, 3..99).written(), "öße");
    assert_eq!(Place::new(&text, 90..99).written(), "");
    let part = Place::new(&text, 2..7).part(2..4);
    assert_eq!((part.written(), part.column()), ("ß", 4));
    assert_eq!(Place::start(&text).to_string(), "file:1:1");
}

#[test]
fn a_long_line_is_cut_after_the_marked_location() {
    let line = "ä".repeat(5000);
    let text = text(&line);
    let message = Problem::error("wrong")
        .at(&Place::new(&text, 4..9000), "here")
        .help("another")
        .render(false);
    assert!(message.contains("file:1:3"), "{message}");
    assert_eq!(message.matches('ä').count(), 2 + 80, "{message}");
}

#[test]
fn all_problems_are_shown_and_on_one_line_without_locations() {
    assert_eq!(Errors::none_of(Vec::new()), Ok(()));
    let text = text("a = b");
    let place = Place::new(&text, 4..5);
    let problems = vec![
        Problem::error("no number").at(&place, "a name"),
        Problem::warning("nothing else"),
    ];
    let errors = Errors::none_of(problems).expect_err("there are two");
    assert_eq!(errors.brief(), "no number: a name; nothing else");
    assert_eq!(errors.problems()[0].place(), Some(&place));
    let rendered = errors.render(false);
    assert!(rendered.contains("error: no number") && rendered.contains("warning: nothing else"));
}
