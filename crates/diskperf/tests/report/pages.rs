//! What is in a page.

use crate::browser::{self, Look, figures, open};
use crate::support::User;

const HOSTILE: &str =
    "<script>window.owned=1</script>\"'&<img src=x onerror=window.owned=1>--></title>";

/// How many of the names begin so.
fn count(names: &[String], prefix: &str) -> usize {
    names.iter().filter(|name| name.starts_with(prefix)).count()
}

#[test]
fn each_chart_has_a_mark_for_each_row() {
    if !browser::there_is("each_chart_has_a_mark_for_each_row") {
        return;
    }
    let user = User::new();
    for words in [
        &[
            "run",
            "ffs83",
            "--on",
            "vax780-sc780-eagle",
            "--label",
            "model",
        ][..],
        &[
            "run", "ffs83", "--on", "./target", "--size", "1M", "--label", "host",
        ],
        &[
            "run",
            "seqread89",
            "--on",
            "./target",
            "--size",
            "1M",
            "--label",
            "calls",
        ],
    ] {
        user.run(words).expect(0, &[]);
    }
    user.run(&["report", "model", "host", "calls", "-o", "all.html"])
        .expect(0, &[]);
    let answers = open(&user.file("all.html"), Look::default());
    let names = figures(&answers);
    // The host is faster by far, and has a scale of its own.
    assert_eq!(count(&names, "throughput-"), 2, "{names:?}");
    assert_eq!(count(&names, "ledger-"), 8, "{names:?}");
    assert_eq!(count(&names, "latency-"), 3, "{names:?}");
    assert_eq!(count(&names, "call-sizes-"), 1, "{names:?}");
    assert!(count(&names, "platter-") >= 1, "{names:?}");
    let text = answers["text"].as_str().unwrap();
    for part in [
        "read_8192",
        "How to repeat it",
        "--label host",
        "seed 1983",
        "fingerprint",
    ] {
        assert!(text.contains(part), "{part}");
    }
    assert_eq!(answers["images"], 0);
    // What the paper of 1983 printed stands beside the model.
    let html = std::fs::read_to_string(user.file("all.html")).unwrap();
    assert!(html.contains("printed: kridle-mckusick-1983, T2"));
}

#[test]
fn dies_of_a_flash_drive_are_seen() {
    if !browser::there_is("dies_of_a_flash_drive_are_seen") {
        return;
    }
    let user = User::new();
    let line = "run random --direct --set program.depth=8 --set program.write_share=0.5 \
                --set program.duration_ms=50 --on bare-nvme-tlc --set drive.past=random";
    let line: Vec<&str> = line.split_whitespace().collect();
    user.run(&line).expect(0, &[]);
    user.run(&["report", "-o", "page.html"]).expect(0, &[]);
    let phone = Look {
        phone: true,
        ..Look::default()
    };
    for look in [Look::default(), phone] {
        let answers = open(&user.file("page.html"), look);
        let names = figures(&answers);
        assert_eq!(
            count(&names, "dies-"),
            2,
            "closely and as a whole: {names:?}"
        );
        for figure in answers["figures"].as_array().unwrap() {
            assert_eq!(figure["marks"], figure["rows"], "{figure}");
        }
        assert_eq!(answers["overflow"], 0);
        let text = answers["text"].as_str().unwrap();
        for part in ["The slowest: read of 4 KiB", "die busy", "Drag across"] {
            assert!(text.contains(part), "{part}");
        }
    }
}

#[test]
fn a_phone_and_a_dark_screen_show_it_all() {
    if !browser::there_is("a_phone_and_a_dark_screen_show_it_all") {
        return;
    }
    let user = User::new();
    user.run(&["run", "read_8192", "--on", "vax780-sc780-eagle"])
        .expect(0, &[]);
    user.run(&["report", "-o", "page.html"]).expect(0, &[]);
    let wide = open(&user.file("page.html"), Look::default());
    let screen = Look {
        phone: true,
        dark: true,
        ..Look::default()
    };
    let small = open(&user.file("page.html"), screen);
    assert_eq!(figures(&wide), figures(&small));
    assert_eq!(small["overflow"], 0, "nothing is wider than the screen");
    assert_ne!(wide["paper"], small["paper"]);
}

/// As print and browsers without scripts have it.
#[test]
fn charts_stand_still_where_no_script_runs() {
    if !browser::there_is("charts_stand_still_where_no_script_runs") {
        return;
    }
    let user = User::new();
    let still = Look {
        no_script: true,
        ..Look::default()
    };
    for words in [
        &["run", "seqread89", "--on", "./target", "--size", "1M"][..],
        &["run", "ffs83", "--on", "vax780-sc780-eagle"],
    ] {
        user.run(words).expect(0, &[]);
    }
    let two: Vec<_> = user.stored().into_iter().map(|run| run.id).collect();
    user.run(&["report", &two[0], &two[1], "-o", "page.html"])
        .expect(0, &[]);
    let card = [
        "reproduce",
        "--cell",
        "*/vax780-sc780-eagle/*/1",
        "--report",
        "card.html",
    ];
    user.run(&card).expect(0, &[]);
    for (page, least) in [("page.html", 6), ("card.html", 3)] {
        let answers = open(&user.file(page), still);
        assert!(figures(&answers).len() >= least, "{page}: {answers}");
        for figure in answers["figures"].as_array().unwrap() {
            assert_eq!(figure["seen"], figure["rows"], "{page}: {figure}");
        }
        // The script replaces the pictures, and adds none.
        let drawn = open(&user.file(page), Look::default());
        assert_eq!(figures(&drawn), figures(&answers), "{page}");
    }
}

#[test]
fn hostile_names_are_only_text() {
    if !browser::there_is("hostile_names_are_only_text") {
        return;
    }
    let user = User::new();
    let place = user.file(&HOSTILE.replace('/', "\u{2215}"));
    std::fs::create_dir(&place).unwrap();
    let place = place.to_str().unwrap();
    for words in [
        &["run", "read_8192", "--size", "1M", "--on", place][..],
        &["run", "read_8192", "--on", "vax780-sc780-eagle"],
    ] {
        user.run(words).expect(0, &[]);
    }
    // As a label nobody is allowed that; a store may have been written by anybody.
    let store = rusqlite::Connection::open(user.store()).unwrap();
    store
        .execute(
            "UPDATE runs SET label = ?1, document = json_set(document, '$.label', ?1)",
            [HOSTILE],
        )
        .unwrap();
    drop(store);
    let ids: Vec<String> = user.stored().into_iter().map(|run| run.id).collect();
    let [model, host] = ids.as_slice() else {
        panic!("two runs are stored: {ids:?}");
    };
    user.run(&["export", model, host, "-o", "two.json"])
        .expect(0, &[]);
    // What comes from elsewhere may say anything.
    let exported = std::fs::read_to_string(user.file("two.json")).unwrap();
    let evil = serde_json::to_string(HOSTILE).unwrap();
    let exported = exported
        .replace("\"read_8192\"", &evil)
        .replace("\"seed 1983\"", &evil)
        .replace("\"eagle\"", &evil);
    std::fs::write(user.file("evil.json"), exported).unwrap();
    user.run(&["report", "last", "./evil.json", "-o", "page.html"])
        .expect(0, &[]);
    let answers = open(&user.file("page.html"), Look::default());
    figures(&answers);
    assert_eq!(answers["owned"], false);
    assert_eq!(answers["images"], 0);
    assert!(answers["text"].as_str().unwrap().contains(HOSTILE));
    user.run(&["report", host, "-o", "one.html"]).expect(0, &[]);
    let answers = open(&user.file("one.html"), Look::default());
    assert!(answers["title"].as_str().unwrap().contains(HOSTILE));
    assert_eq!(answers["owned"], false);
}

#[test]
fn the_accuracy_card_is_a_page_too() {
    if !browser::there_is("the_accuracy_card_is_a_page_too") {
        return;
    }
    let user = User::new();
    let words = [
        "reproduce",
        "--cell",
        "*/vax780-sc780-eagle/*/1",
        "--report",
        "card.html",
    ];
    let printed = user.run(&words).expect(0, &[]);
    assert!(
        printed.stdout.contains("How near"),
        "the card is printed as well"
    );
    let answers = open(&user.file("card.html"), Look::default());
    let names = figures(&answers);
    assert_eq!(
        names,
        ["accuracy-throughput", "accuracy-cpu", "accuracy-errors"]
    );
    assert!(
        answers["text"]
            .as_str()
            .unwrap()
            .contains("Free parameters")
    );
}

#[test]
fn a_search_is_a_heat_map_with_the_cliff() {
    if !browser::there_is("a_search_is_a_heat_map_with_the_cliff") {
        return;
    }
    let user = User::new();
    let line = "tune track_read --on pcat-st251 --set program.call_bytes=512 --report surface.html \
                --over drive.spindle_rpm=3000,3600 --over drive.interleave=2..4";
    let words: Vec<&str> = line.split_whitespace().collect();
    user.run(&words).expect(0, &[]);
    let answers = open(&user.file("surface.html"), Look::default());
    assert_eq!(figures(&answers), ["tuning"]);
    assert_eq!(answers["figures"][0]["rows"], 6);
    assert!(answers["text"].as_str().unwrap().contains("a cliff"));
}
