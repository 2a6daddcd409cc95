//! `ab`: two experiments in interleaved blocks.

use crate::support::machine::{LoopDevice, Needs, can_run, checksum, fill, mounts_in};
use crate::support::{MOUNTS, User, entries, mount_tmpfs, words};
use serde_json::Value;
use std::fs;

/// The two runs that the store has, A's first.
fn arms(user: &User) -> [Value; 2] {
    let stored = user.stored();
    assert_eq!(stored.len(), 2, "{stored:?}");
    let shown = stored.iter().map(|run| {
        let shown = user.run(&["show", &run.id, "--format", "json"]);
        shown.expect(0, &[]).json()["runs"][0].clone()
    });
    let mut arms: Vec<Value> = shown.collect();
    arms.sort_by_key(|run| run["interleaved"]["arm"].to_string());
    arms.try_into().unwrap()
}

/// Of each block, whether B ran second; both arms must say the same.
fn order([a, b]: &[Value; 2], result: usize) -> Vec<bool> {
    let blocks = |run: &Value| -> Vec<(u64, bool)> {
        let repetitions = run["results"][result]["repetitions"].as_array().unwrap();
        assert_eq!(repetitions[0]["discarded"], true);
        assert!(repetitions[0]["block"].is_null());
        let block = |one: &Value| {
            let (block, discarded) = (&one["block"], &one["discarded"]);
            assert_eq!(discarded, false);
            (
                block["number"].as_u64().unwrap(),
                block["second"].as_bool().unwrap(),
            )
        };
        repetitions[1..].iter().map(block).collect()
    };
    let (of_a, of_b) = (blocks(a), blocks(b));
    assert_eq!(of_a.len(), of_b.len());
    for (number, (a, b)) in of_a.iter().zip(&of_b).enumerate() {
        assert_eq!((a.0, b.0), (number as u64, number as u64));
        assert_ne!(a.1, b.1);
    }
    of_b.into_iter().map(|(_, second)| second).collect()
}

#[test]
fn both_arms_are_stored_as_partners_in_blocks() {
    let user = User::new();
    let line = "ab ./target ./target write_8192 --size 256K --blocks 6 --label x --format json";
    let compared = user.run(&words(line)).expect(0, &[]).json();
    let arms = arms(&user);
    let [a, b] = &arms;
    assert_eq!(a["interleaved"]["partner"], b["id"]);
    assert_eq!(b["interleaved"]["partner"], a["id"]);
    assert_eq!(a["interleaved"]["seed"], 1983);
    assert_eq!(a["interleaved"]["places_differ"], false);
    assert_eq!((&a["label"], &b["label"]), (&"x-a".into(), &"x-b".into()));
    for run in &arms {
        assert_eq!(run["state"], "finished");
        let result = &run["results"][0];
        assert_eq!(result["protocol"]["repetitions"], 7);
        assert_eq!(result["protocol"]["discarded"], 1);
    }
    assert_eq!(order(&arms, 0).len(), 6);
    // A write has two rates.
    let pairs = compared["comparison"]["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 2, "{compared}");
    let again = user.run(&["compare", "x-a", "x-b", "--format", "json"]);
    assert_eq!(
        again.expect(0, &[]).json()["comparison"]["pairs"],
        compared["comparison"]["pairs"]
    );
    user.assert_nothing_left(line);
}

#[test]
fn coins_are_those_of_the_seed() {
    let orders = |seed: &str| {
        let user = User::new();
        let line = format!("ffs83 --on ./target --size 64K --blocks 12 --seed {seed}");
        let line = [&["ab", "", ""], &words(&line)[..]].concat();
        user.run(&line).expect(0, &[]);
        let arms = arms(&user);
        (0..4)
            .map(|result| order(&arms, result))
            .collect::<Vec<_>>()
    };
    let first = orders("1");
    assert_eq!(orders("1"), first);
    assert_ne!(orders("2"), first);
    // Each program has coins of its own, and both sides of them come up.
    assert_ne!(first[0], first[1]);
    for order in first {
        assert!(order.contains(&true) && order.contains(&false), "{order:?}");
    }
}

#[test]
fn hooks_run_before_the_repetitions_of_their_arm() {
    let user = User::new();
    let before = |arm: &str| format!("echo {arm} >> log");
    let (a, b) = (before("a"), before("b"));
    let mut line = words("ab ./target ./target read_8192 --size 64K --blocks 5 --before-a");
    line.extend([a.as_str(), "--before-b", &b]);
    user.run(&[&line[..], &["--dry-run"]].concat())
        .expect(0, &[])
        .shows(&["before each repetition: --before-a `echo a >> log`"]);
    assert!(!user.file("log").exists());
    user.run(&line).expect(0, &[]);
    let log = fs::read_to_string(user.file("log")).unwrap();
    let arms = arms(&user);
    // The discarded ones, and then each block in the order of its coin.
    let of = |b_second: &bool| if *b_second { "a\nb\n" } else { "b\na\n" };
    let blocks: String = order(&arms, 0).iter().map(of).collect();
    assert_eq!(log, format!("a\nb\n{blocks}"));
    assert!(arms[0]["notes"].to_string().contains("--before-a"));
}

#[test]
fn a_hook_that_fails_ends_both_runs() {
    let user = User::new();
    // Not the discarded one, but the third.
    let hook = "echo x >> log; echo no luck; test $(wc -l < log) -lt 3 || exit 7";
    let mut line = words("ab ./target ./target write_8192 --size 64K --before-b");
    line.push(hook);
    user.run(&line)
        .expect(1, &["--before-b `echo x", "(exit status: 7): no luck"]);
    let arms = arms(&user);
    assert_eq!(order(&arms, 0).len(), 1);
    for run in arms {
        assert_eq!(run["state"], "failed");
        assert!(run["error"].as_str().unwrap().contains("no luck"));
    }
    user.assert_nothing_left(hook);
    // As a failure beside a gate, which has 1 for itself.
    line.extend(["--fail-over", "5%"]);
    user.run(&line).expect(2, &["no luck"]);
}

/// Of one thing, and of one that takes three times as long in each call.
#[test]
fn alike_arms_are_no_different_and_others_are() {
    let user = User::new();
    let _memory = rustix::process::geteuid()
        .is_root()
        .then(|| mount_tmpfs(&user.target(), "size=64m"));
    let same =
        "ab ./target ./target read_8192 --size 1M --cache warm --min-effect 30% --blocks 400";
    // Of a hundred pairs of equal arms, one may be called different: not two in a row.
    let mut attempts = (0..2).map(|_| user.run(&words(same)).expect(0, &[]));
    let is_alike = attempts.any(|same| {
        println!("{same:?}");
        same.has("no difference")
    });
    assert!(is_alike);
    let slow = "program.think_ns=100000";
    let asked = "read_8192 --on ./target --size 1M --cache warm --blocks 400 --fail-over 30%";
    let slower = [&["ab", "", slow], &words(asked)[..]].concat();
    user.run(&slower).expect(1, &["slower"]).shows(&["slower"]);
    let faster = [&["ab", slow, ""], &words(asked)[..]].concat();
    user.run(&faster).expect(0, &[]).shows(&["faster"]);
    // Too few blocks for anything.
    let few = asked.replace("--blocks 400", "--blocks 3");
    let few = [&["ab", "", slow], &words(&few)[..]].concat();
    user.run(&few).expect(3, &[]);
}

/// Where the arms differ, as many blocks again as the verdict took; else none. A shortest
/// time goes beyond both.
#[test]
fn the_size_of_a_difference_is_measured_after_its_verdict() {
    let rows = "read_8192 --on ./target --size 64K --cache warm --min-effect 90% --format json";
    let slow = "program.think_ns=3000000";
    for (b, more, is_capped) in [
        (slow, "--budget 1h", false),
        ("", "--blocks 40 --budget 1h --min-time 30m", true),
    ] {
        let user = User::new();
        let line = format!("{rows} {more}");
        let line = [&["ab", "", b], &words(&line)[..]].concat();
        let compared = user.run(&line).expect(0, &[]).json();
        let pair = &compared["comparison"]["pairs"][0];
        let count = |name: &str| pair["blocks"][name].as_u64().unwrap();
        let (total, after) = (count("total"), count("after_verdict"));
        assert!(after > 0 && total > after, "{pair}");
        match is_capped {
            true => assert_eq!(total, 40),
            false => assert_eq!(after, (total - after) | 1, "{pair}"),
        }
        for arm in arms(&user) {
            let repetitions = arm["results"][0]["repetitions"].as_array().unwrap();
            let flags: Vec<bool> = repetitions[1..]
                .iter()
                .map(|one| one["block"]["after_verdict"] == true)
                .collect();
            assert_eq!(flags.iter().filter(|flag| **flag).count() as u64, after);
            assert!(flags.is_sorted(), "{flags:?}");
        }
    }
}

#[test]
fn modelled_systems_are_compared_exactly() {
    let user = User::new();
    let line = "ab vax780-sc780-eagle vax750-sc750-eagle write_8192 --size 256K";
    user.run(&words(line)).expect(0, &[]).shows(&["slower"]);
    let dry = user.run(&words(&format!("{line} --dry-run")));
    dry.expect(0, &[]).shows(&["the comparison is exact"]);
    assert_eq!(user.stored().len(), 2);
}

#[test]
fn a_stored_run_is_repeated_as_it_was() {
    let user = User::new();
    let first = "run read_8192 --on ./target --size 128K --runs 2 --cache warm --label old";
    user.run(&words(first)).expect(0, &[]);
    fs::create_dir(user.file("elsewhere")).unwrap();
    let mut again = user.command(&words("ab old old --blocks 2 --format json"));
    again.current_dir(user.file("elsewhere"));
    let made = again.output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let runs = user.stored();
    assert_eq!(runs.len(), 3);
    let shown = user
        .run(&["show", &runs[0].id, "--format", "json"])
        .expect(0, &[]);
    let run = &shown.json()["runs"][0];
    assert_eq!(run["results"][0]["program"], "read_8192");
    assert_eq!(run["results"][0]["size_bytes"], 128 << 10);
    assert_eq!(run["cache"], "warm");
}

/// What mattered when the blocks were measured also matters when they are compared later.
#[test]
fn arms_are_compared_as_they_were_measured() {
    let user = User::new();
    let line = "ab ./target ./target read_8192 --size 64K --cache warm --blocks 40 --label x --format json --min-effect";
    let made = user.run(&[&words(line)[..], &["20%"]].concat());
    let made = made.expect(0, &[]).json();
    for arm in arms(&user) {
        assert_eq!(arm["interleaved"]["min_effect"], 0.2);
    }
    let compared = |more: &[&str]| {
        let line = [&words("compare x-a x-b --format json")[..], more].concat();
        user.run(&line).expect(0, &[]).json()["comparison"]["pairs"].clone()
    };
    assert_eq!(compared(&[]), made["comparison"]["pairs"]);
    assert_eq!(compared(&["--min-effect", "20%"]), compared(&[]));
}

/// The blocks that both arms have, of a comparison in JSON: each side's repetitions.
fn blocks(compared: &Value) -> Vec<(usize, usize)> {
    let pairs = compared["comparison"]["pairs"].as_array().unwrap();
    let of = |side: &Value| side["repetitions_kb_per_s"].as_array().unwrap().len();
    let both = pairs
        .iter()
        .map(|pair| (of(&pair["base"]), of(&pair["other"])));
    both.collect()
}

#[test]
fn devices_are_measured_in_blocks() {
    if !can_run("devices_are_measured_in_blocks", MOUNTS) {
        return;
    }
    let user = User::new();
    let [a, b] = [0x5a, 0xa5].map(|byte| {
        let image = user.file(&format!("image-{byte:x}"));
        fill(&image, 16, byte);
        LoopDevice::over(&image, &[])
    });
    let (on_a, on_b) = (a.text(), b.text());
    let before = [&a, &b].map(|device| checksum(&device.path));
    let line = "read_8192 --size 1M --blocks 4 --format json";
    // Two devices, and two settings of one, which is then opened once.
    for (arms, more, differ) in [
        ([on_a.as_str(), &on_b], vec![], true),
        (["", "--direct"], vec!["--on", &on_a], false),
    ] {
        let words = [&["ab"][..], &arms, &words(line), &more].concat();
        let compared = user.run(&words).expect(0, &[]).json();
        assert_eq!(blocks(&compared), [(4, 4)]);
        let newest = &user.stored()[0].id;
        let shown = user.run(&["show", newest, "--format", "json"]);
        let run = &shown.expect(0, &[]).json()["runs"][0];
        assert_eq!(run["interleaved"]["places_differ"], differ);
    }
    assert_eq!([&a, &b].map(|device| checksum(&device.path)), before);
    // Both are written where both are given up; of one that is not, that is said.
    let write = "write_8192 --size 1M --blocks 3 --format json";
    let given_up = ["--destroy-data-on", &on_a, "--destroy-data-on", &on_b];
    let both = [&["ab", &on_a, &on_b][..], &words(write), &given_up].concat();
    let compared = user.run(&both).expect(0, &[]).json();
    assert_eq!(blocks(&compared), [(3, 3); 2]);
    let one = [&["ab", &on_a, &on_b][..], &words(write), &given_up[..2]].concat();
    let said = format!("--destroy-data-on {on_b}");
    user.run(&one).expect(2, &[&said]);
    // The same device for both, given up once.
    let shared = [
        &["ab", "", "program.call_bytes=4K", "--on", &on_a][..],
        &words(write),
    ];
    let shared = [&shared.concat()[..], &given_up[..2]].concat();
    let compared = user.run(&shared).expect(0, &[]).json();
    assert_eq!(blocks(&compared), [(3, 3); 2]);
    user.assert_nothing_left("devices");
}

#[test]
fn fresh_file_systems_are_measured_in_blocks() {
    let needs = [MOUNTS, &[Needs::Tool("mkfs.ext4")]].concat();
    if !can_run("fresh_file_systems_are_measured_in_blocks", &needs) {
        return;
    }
    let user = User::new();
    let [small, large] = ["1024", "4096"].map(|bytes| format!("--fresh ext4:block_bytes={bytes}"));
    let line = "write_8192 --on ./target --size 1M --blocks 3 --format json";
    let words_of = [&["ab", &small, &large][..], &words(line)].concat();
    let compared = user.run(&words_of).expect(0, &[]).json();
    assert_eq!(blocks(&compared), [(3, 3); 2]);
    let filesystems = |side: &str| compared["comparison"]["pairs"][0][side]["filesystem"].clone();
    assert_eq!(
        [filesystems("base"), filesystems("other")],
        ["ext4/1024", "ext4/4096"]
    );
    for arm in arms(&user) {
        assert_eq!(arm["state"], "finished");
        assert_eq!(arm["interleaved"]["places_differ"], true);
    }
    user.assert_nothing_left("fresh");
    assert_eq!(mounts_in(&user.target()), [""; 0]);
    // One that cannot be made leaves nothing of the other.
    let broken = "--fresh ext4:block_bytes=4096,mkfs=--no-such-option";
    let words_of = [&["ab", &small, broken][..], &words(line)].concat();
    let outcome = user.run(&words_of);
    assert_ne!(outcome.code, Some(0), "{outcome:?}");
    user.assert_nothing_left("a broken one");
    assert_eq!(mounts_in(&user.target()), [""; 0]);
}

#[test]
fn several_targets_at_once_are_one_arm() {
    let user = User::new();
    for name in ["other", "third"] {
        fs::create_dir(user.file(name)).unwrap();
    }
    let line = "read_8192 --size 256K --blocks 3 --format json";
    let both = "--on ./target --on ./other --together";
    let drives = |compared: &Value| {
        let pair = &compared["comparison"]["pairs"][0];
        [
            pair["base"]["drives"].clone(),
            pair["other"]["drives"].clone(),
        ]
    };
    // The same two in either arm, and one beside two.
    let same = [
        &["ab", "", "program.call_bytes=4K"][..],
        &words(line),
        &words(both),
    ]
    .concat();
    let compared = user.run(&same).expect(0, &[]).json();
    assert_eq!(
        (blocks(&compared), drives(&compared)),
        (vec![(3, 3)], [2.into(), 2.into()])
    );
    for arm in arms(&user) {
        let both = ["target", "other"].map(|name| user.file(name).display().to_string());
        assert_eq!(arm["target"], both.join(" + "));
        assert_eq!(arm["interleaved"]["places_differ"], false);
    }
    let more = [&["ab", "./third", both][..], &words(line)].concat();
    let compared = user.run(&more).expect(0, &[]).json();
    assert_eq!(
        (blocks(&compared), drives(&compared)),
        (vec![(3, 3)], [1.into(), 2.into()])
    );
    user.assert_nothing_left("together");
    for name in ["other", "third"] {
        assert_eq!(entries(&user.file(name)), [""; 0]);
    }
}

/// What cannot be compared in blocks is refused before anything is measured.
#[test]
fn mistakes_are_told_with_what_to_write() {
    let user = User::new();
    fs::create_dir(user.file("mine")).unwrap();
    for (line, said) in [
        (
            "ab ./target vax780-sc780-eagle",
            "blocks of both tell nothing",
        ),
        ("ab read_8192 ./target", "A: `read_8192` is what runs"),
        (
            "ab ./target nothing",
            "B: `nothing` is no path (write ./nothing)",
        ),
        ("ab --direct=maybe ./target", "A: unexpected value 'maybe'"),
        ("ab --bogus ./target", "A: unexpected argument '--bogus'"),
        (
            "ab --suite=ffs83 --suite=write_8192 --on ./target",
            "program 1 is write_4096 in A and write_8192 in B",
        ),
        ("ab ./target ./nowhere write_8192", "B: "),
        (
            "ab --set program.depth=1 --set program.depth=8 random",
            "A: `--set` lacks its value: A and B are one word each, as in `diskperf ab program.depth=1 program.depth=8 random`",
        ),
        ("ab ./target ./target --budget 3", "write 90s, 3m or 1h"),
        ("ab ./target ./target --budget 0s", "no time above 0"),
        (
            "ab ./target ./target ffs83 --size 64K --budget 1m --min-time 20s",
            "--min-time 20s for each program (4 in all) is 80s, and the --budget is 60s",
        ),
        ("ab ./target ./target --label a/b", "--label a/b-a"),
        (
            "ab vax780-sc780-eagle vax780-sc780-eagle --before-b true",
            "takes no notice",
        ),
    ] {
        user.run(&words(line)).expect(2, &[said]);
    }
    let unclosed = ["ab", "--on 'x", "./target"];
    let said = "A: a quotation mark in `--on 'x` is not closed";
    user.run(&unclosed).expect(2, &[said]);
    assert!(user.stored().is_empty());
    user.assert_nothing_left("mistakes");
}
