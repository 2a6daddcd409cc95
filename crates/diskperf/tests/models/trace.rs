//! What block traces hold, on the command line. What is in them is tested in `blocktrace`.

use crate::support::{User, words};
use std::fmt::Write;

/// A trace of MSR's form: a request each ms, one of four written, two disks in turn.
fn msr(requests: u64) -> String {
    let mut text = String::new();
    for number in 0..requests {
        let ticks = 128_166_400_000_000_000 + number * 10_000;
        let what = if number % 4 == 0 { "Write" } else { "Read" };
        let (disk, offset) = (number % 2, number % 100 * 4096);
        writeln!(text, "{ticks},web,{disk},{what},{offset},4096,1000").expect("memory");
    }
    text
}

#[test]
fn a_trace_is_summed_up_in_every_format() {
    let user = User::new();
    std::fs::write(user.file("web.csv"), msr(20_000)).expect("a trace");
    user.run(&words("trace web.csv")).expect(0, &[]).shows(&[
        "web.csv: 20000 requests of msr",
        "on 2 devices: 1000 requests/s",
        "commonest 4 KiB 100.0 %",
        "coefficient of variation 0.00",
        "in flight: 0.10 on average, 1 at most",
        "footprint 400 KiB",
        "LRU cache",
        "web.0",
    ]);
    let found = user
        .run(&words("trace web.csv --format json"))
        .expect(0, &[])
        .json();
    assert_eq!(found["form"], "msr");
    assert_eq!(found["summary"]["operations"][0]["requests"], 15_000);
    assert_eq!(
        found["summary"]["operations"][0]["response_ns"]["p50"]
            .as_f64()
            .map(|ns| (ns / 1000.0).round()),
        Some(100.0)
    );
    let part = "trace web.csv --device web.1 --window 1s..3s --format json";
    let found = user.run(&words(part)).expect(0, &[]).json();
    assert_eq!(found["summary"]["requests"], 1000);
    let line = "trace web.csv --quiet --report web.html";
    user.run(&words(line)).expect(0, &[]);
    let page = std::fs::read_to_string(user.file("web.html")).expect("a page");
    for chart in ["requests", "bytes", "depth", "misses", "sizes"] {
        let drawn = format!("data-chart=\"trace-{chart}\"");
        assert!(page.contains(&drawn), "{chart}");
    }
    assert_eq!(page.matches("<svg class=\"still\"").count(), 5);
    let csv = user
        .run(&words("trace web.csv --format csv"))
        .expect(0, &[]);
    csv.shows(&["cache_bytes,miss_share"]);
    assert!(user.stored().is_empty(), "nothing was run");
}

#[test]
fn a_trace_is_written_in_another_form_and_read_again() {
    let user = User::new();
    std::fs::write(user.file("web.csv"), msr(500)).expect("a trace");
    let line = "trace web.csv --convert spc -o web.spc --scale-addresses 100K";
    user.run(&words(line))
        .expect(0, &["500 requests written as spc"]);
    let found = user
        .run(&words("trace web.spc --format json"))
        .expect(0, &[])
        .json();
    assert_eq!(found["form"], "spc");
    assert_eq!(found["summary"]["requests"], 500);
    assert!(found["summary"]["highest_bytes"].as_u64() <= Some(100 << 10));
    assert_eq!(found["summary"]["aligned_4096_share"], 1.0);
    // fio reads what is written as its own.
    let line = "trace web.csv --device web.0 --convert fio-iolog-3 -o web.iolog";
    user.run(&words(line)).expect(0, &["250 requests written"]);
    std::fs::write(user.file("web.0"), vec![0; 1 << 20]).expect("a file");
    let fio = std::process::Command::new("fio")
        .args([
            "--name=x",
            "--read_iolog=web.iolog",
            "--replay_no_stall=1",
            "--output-format=json",
        ])
        .current_dir(user.home())
        .output();
    match fio {
        Ok(done) => {
            let text = String::from_utf8_lossy(&done.stdout);
            let from = text.find('{').expect("fio prints JSON");
            let printed: serde_json::Value = serde_json::from_str(&text[from..]).expect("JSON");
            let ios = |of: &str| printed["jobs"][0][of]["total_ios"].as_u64();
            assert_eq!((ios("read"), ios("write")), (Some(125), Some(125)));
        }
        Err(error) => eprintln!("SKIPPED a_trace_is_written_in_another_form: fio: {error}"),
    }
}

#[test]
fn requests_that_a_form_cannot_carry_are_counted_by_kind() {
    let user = User::new();
    let lines = "time_ns,op,offset,length,response_ns,device\n0,W,0,4096,9,d\n10,F,0,0,9,d\n20,F,0,0,9,d\n30,D,0,4096,9,d\n40,Z,0,4096,9,d\n50,R,7,100,9,d\n";
    std::fs::write(user.file("kinds.csv"), lines).expect("a trace");
    for (form, left_out) in [
        ("msr", "discards (1), flushes (2), writes of zeroes (1)"),
        (
            "disksim",
            "discards (1), flushes (2), requests of partial sectors (1), writes of zeroes (1)",
        ),
        ("fio-iolog-3", "writes of zeroes (1)"),
    ] {
        let line = format!("trace kinds.csv --convert {form} -o {form}.out");
        let said = format!("left out, because {form} cannot carry them: {left_out}");
        user.run(&words(&line)).expect(0, &[&said]);
    }
}

#[test]
fn a_part_without_requests_is_no_table() {
    let user = User::new();
    std::fs::write(user.file("web.csv"), msr(3)).expect("a trace");
    let printed = user.run(&words("trace web.csv --window 1h..2h"));
    assert!(!printed.stdout.contains("operation"), "{printed:?}");
    printed
        .expect(0, &[])
        .shows(&["web.csv: 0 requests of msr, from 3600 to 7200 s"]);
}

#[test]
fn what_cannot_be_read_says_where_and_what_does() {
    let user = User::new();
    std::fs::write(user.file("none.txt"), "nothing of this\n").expect("a file");
    std::fs::write(user.file("mq.trace"), "12 0 70336 16 1\n").expect("a file");
    std::fs::write(user.file("cut.csv"), &msr(3)[..120]).expect("a file");
    std::fs::write(user.file("web.csv"), msr(3)).expect("a file");
    for (line, says) in [
        (
            "trace none.txt",
            &["none.txt", "no form begins with", "--columns"][..],
        ),
        ("trace mq.trace", &["--time-unit"]),
        ("trace cut.csv", &["cut.csv, line 3", "--partial"]),
        ("trace absent.csv", &["absent.csv"]),
        (
            "trace web.csv --device sda",
            &["--device sda", "web.0, web.1"],
        ),
        ("trace web.csv --form msw", &["there is no form `msw`"]),
        ("trace web.csv --window 5..6", &["FROM..TO with units"]),
        (
            "trace web.csv --convert blkparse -o out",
            &["read and not written"],
        ),
        (
            "trace web.csv --convert spc -o web.csv",
            &["web.csv", "what the output is made of"],
        ),
        ("trace web.csv web.csv", &["only blktrace traces"]),
    ] {
        user.run(&words(line)).expect(2, says);
    }
    assert_eq!(
        std::fs::read_to_string(user.file("web.csv")).expect("a file"),
        msr(3)
    );
    user.run(&words("trace cut.csv --partial"))
        .expect(0, &[])
        .shows(&["cut off"]);
}
