use super::*;

#[test]
fn json_keeps_the_contract() {
    let text = render_runs(
        &[build_ffs83_run("3fa85f6457", "/var/tmp")],
        ReportFormat::Json,
        0,
    );
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let run = &json["runs"][0];
    for key in ["id", "suite", "target", "world", "seed", "results"] {
        assert!(!run[key].is_null(), "{key}");
    }
    assert_eq!(run["world"], "host");
    let programs: Vec<&str> = run["results"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["program"].as_str())
        .collect();
    assert_eq!(
        programs,
        ["read_8192", "write_4096", "write_8192", "rewrite_8192"]
    );
    for (index, durable) in [(0, false), (1, true)] {
        let result = run["results"][index].as_object().unwrap();
        for key in [
            "program",
            "drives",
            "filesystem",
            "size_bytes",
            "kb_per_s",
            "cpu_percent",
            "elapsed_s",
        ] {
            assert!(!result[key].is_null(), "{key}");
        }
        assert_eq!(result["durable_kb_per_s"].is_number(), durable);
        let interval = result["interval"].as_object().unwrap();
        for key in ["low", "high", "confidence", "method"] {
            assert!(!interval[key].is_null(), "{key}");
        }
        let repetitions = result["repetitions"].as_array().unwrap();
        assert_eq!(repetitions.len(), 3);
        assert!(repetitions.iter().all(|one| one["kb_per_s"].is_number()));
    }
    let single = run_of_one(vec![read_repetition(MIB, 100.0, 1.0)]);
    let json: serde_json::Value =
        serde_json::from_str(&render_runs(&[single], ReportFormat::Json, 0)).unwrap();
    assert!(json["runs"][0]["results"][0]["interval"].is_null());
}

#[test]
fn csv_quotes_what_must_be_quoted() {
    let mut one = run_of_one(vec![read_repetition(MIB, 100.0, 1.0)]);
    one.user_label = Some("a \"quoted\", name".to_owned());
    one.results[0].notes = vec!["two\nlines".to_owned()];
    let text = render_runs(&[one], ReportFormat::Csv, 0);
    assert!(
        text.contains("3fa85f6457,\"a \"\"quoted\"\", name\",read,"),
        "{text}"
    );
    assert!(text.ends_with(",\"two\nlines\"\r\n"), "{text}");
    let heading = text.split("\r\n").next().unwrap();
    assert!(
        heading.starts_with("run,label,suite,target,world,seed,"),
        "{heading}"
    );
}

/// A spreadsheet calculates what begins like a formula.
#[test]
fn csv_of_text_is_no_formula() {
    for (text, field) in [
        ("=1+1", "'=1+1"),
        ("+A1", "'+A1"),
        ("-A1", "'-A1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("＝1", "'＝1"),
        ("=\"a\",1", "\"'=\"\"a\"\",1\""),
        ("\t=1", "\\u0009=1"),
        ("\r=1", "\\u000d=1"),
        ("-12.5", "-12.5"),
        ("+1e-3", "+1e-3"),
        ("-inf", "'-inf"),
        ("-", "'-"),
        ("", ""),
        ("vax780-sc780-eagle", "vax780-sc780-eagle"),
    ] {
        assert_eq!(escape_csv_field(text), field, "{text:?}");
    }
    let mut one = run_of_one(vec![read_repetition(MIB, 100.0, 1.0)]);
    one.user_label = Some("=1+1".to_owned());
    let text = render_runs(&[one], ReportFormat::Csv, 0);
    assert!(text.contains("\r\n3fa85f6457,'=1+1,read,"), "{text}");
}

/// A cell is on one line, in one column, and no HTML.
#[test]
fn markdown_of_text_is_one_cell() {
    for (text, cell) in [
        ("a|b\nc\r\nd", "a\\|b c d"),
        ("<b>x</b>", "\\<b\\>x\\</b\\>"),
        ("\u{1b}[2J", "\\\\u001b\\[2J"),
    ] {
        assert_eq!(escape_markdown_cell(text), cell, "{text:?}");
    }
}
