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
    let place = SourceSpan::new(&text, 21..22);
    assert_eq!(
        (place.as_str(), place.to_string().as_str()),
        ("2", "file:2:8")
    );
    let end = SourceSpan::new(&text, 9..13);
    assert_eq!((end.line_number(), end.line().marked_range), (1, 9..11));
}

#[test]
fn a_span_is_clipped_to_the_text_and_to_whole_characters() {
    let text = text("größe");
    assert_eq!(SourceSpan::new(&text, 3..99).as_str(), "öße");
    assert_eq!(SourceSpan::new(&text, 90..99).as_str(), "");
    let part = SourceSpan::new(&text, 2..7).subspan(2..4);
    assert_eq!((part.as_str(), part.column()), ("ß", 4));
    assert_eq!(SourceSpan::start(&text).to_string(), "file:1:1");
}

#[test]
fn a_long_line_is_cut_after_the_marked_location() {
    let line = "ä".repeat(5000);
    let text = text(&line);
    let message = Problem::error("wrong")
        .at(&SourceSpan::new(&text, 4..9000), "here")
        .help("another")
        .render(false);
    assert!(message.contains("file:1:3"), "{message}");
    assert_eq!(message.matches('ä').count(), 2 + 80, "{message}");
}

#[test]
fn all_problems_are_shown_and_on_one_line_without_locations() {
    assert_eq!(Errors::fail_if_any(Vec::new()), Ok(()));
    let text = text("a = b");
    let place = SourceSpan::new(&text, 4..5);
    let problems = vec![
        Problem::error("no number").at(&place, "a name"),
        Problem::warning("nothing else"),
    ];
    let errors = Errors::fail_if_any(problems).expect_err("there are two");
    assert_eq!(errors.brief(), "no number: a name; nothing else");
    let at = |span| Problem::error("wrong").at(&SourceSpan::new(&text, span), "here");
    let unsorted = vec![Problem::error("first"), at(4..5), at(0..1)];
    let sorted = Errors::fail_if_any(unsorted).expect_err("there are three");
    let columns = sorted.problems().iter();
    let columns: Vec<_> = columns
        .map(|one| one.span().map(SourceSpan::column))
        .collect();
    assert_eq!(columns, [None, Some(1), Some(5)]);
    assert_eq!(errors.problems()[0].span(), Some(&place));
    let rendered = errors.render(false);
    assert!(rendered.contains("error: no number") && rendered.contains("warning: nothing else"));
}
