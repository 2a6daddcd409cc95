//! Calculations on the command line. What is in them is tested in the
//! analysis.

use crate::support::{User, words};

fn with(options: &str) -> Vec<&str> {
    let mut all = vec!["calculate", "interleave"];
    all.extend(words(options));
    all
}

#[test]
fn an_interleave_factor_in_every_format() {
    let user = User::new();
    let case = "--driver-ms 0.6 --system-call-ms 1.8 --clock-ms 1.2 --factor 4";
    user.run(&with(case)).expect(0, &[]).shows(&[
        "17 sectors of 512 bytes, 3600 rpm",
        "interlace time 2.400 ms = 2.45 sectors: factor 4 without interruptions",
        "recommended: factor 5",
        "responsible: the clock; without, factor 4 would be best",
        "factor 4: 71.9 KB/s",
        "modelled: the same case on the modelled machine is also best at factor 5",
    ]);
    for (format, says) in [("csv", "factor,missed_share"), ("markdown", "| factor |")] {
        let all = format!("{case} --format {format}");
        user.run(&with(&all)).expect(0, &[]).shows(&[says]);
    }
    let all = format!("{case} --format json");
    let json = user.run(&with(&all)).expect(0, &[]).json();
    assert_eq!(json["recommended"]["factor"], 5);
    assert_eq!(json["uninterrupted_factor"], 4);
    assert!(user.stored().is_empty(), "nothing was run");
}

#[test]
fn a_drive_of_the_catalogue_or_of_ones_own() {
    let user = User::new();
    let json = |options: &str| {
        user.run(&with(&format!("--driver-ms 0.5 {options}")))
            .expect(0, &[])
            .json()
    };
    let eagle = json("--drive eagle --format json");
    assert_eq!(eagle["inputs"]["track"]["rpm"], 3961.0);
    assert_eq!(eagle["inputs"]["track"]["sectors_per_track"], 48);
    let spare = json("--drive rm80 --rpm 1800 --format json");
    assert_eq!(spare["inputs"]["track"]["spare_sectors_per_track"], 1);
    assert_eq!(spare["inputs"]["track"]["rpm"], 1800.0);
    let more = json("--drive rm80 --spare-sectors-per-track 2 --format json");
    assert_eq!(more["inputs"]["track"]["spare_sectors_per_track"], 2);
    let folder = user.file("overlay/drives");
    std::fs::create_dir_all(&folder).unwrap();
    let text = "extends = \"eagle\"\nspindle_rpm = 2400\n";
    std::fs::write(folder.join("mine.toml"), text).unwrap();
    let mine = json("--drive mine --catalogue overlay --format json");
    assert_eq!(mine["revolution_ms"], 25.0);
}

#[test]
fn what_makes_no_sense_names_its_option() {
    let user = User::new();
    let cases: &[(&str, &[&str])] = &[
        (
            "--sectors-per-track 0",
            &["--sectors-per-track: 0", "1 to 10000 is allowed"],
        ),
        ("--factor 18", &["--factor: 18", "1 to 17 is allowed"]),
        (
            "--drive eagel",
            &["--drive eagel", "no drive `eagel`", "did you mean `eagle`?"],
        ),
        ("--drive quantum", &["no drive `quantum`", "list drives"]),
        ("--driver-ms -1", &["--driver-ms: -1", "0 to 10000"]),
        ("--driver-ms nan", &["--driver-ms: NaN", "0 to 10000"]),
        ("--cpu-speed 0", &["--cpu-speed: 0", "0.001"]),
        (
            "--serial-lines 2 --serial programmed",
            &["--serial-lines: interrupts alone take 192 %", "pseudo-dma"],
        ),
        (
            "--serial-lines 1 --serial dma --serial-us-per-char 5",
            &["--serial-us-per-char", "--serial-done-us-per-char"],
        ),
        ("--baud 300", &["--serial-lines"]),
        ("--drive eagle --catalogue ./absent", &["absent"]),
    ];
    for (options, parts) in cases {
        user.run(&with(options)).expect(2, parts);
    }
}

#[test]
fn what_a_disks_queue_gains() {
    let user = User::new();
    let line = "calculate disk --on bare-sata-7200 --requests 4000";
    user.run(&words(line)).expect(0, &[]).shows(&[
        "The queue of sata-7200 of bare-sata-7200",
        "random reads of 4 KiB over the whole disk",
        "bound",
        "sptf*",
        "*: the drive's own order",
    ]);
    for (format, says) in [("csv", "depth,order,mean_ms"), ("markdown", "| depth |")] {
        let all = format!("{line} --format {format}");
        user.run(&words(&all)).expect(0, &[]).shows(&[says]);
    }
    let all = format!("{line} --format json");
    let json = user.run(&words(&all)).expect(0, &[]).json();
    let depths = json["depths"].as_array().expect("of depths");
    assert_eq!(depths.len(), 7);
    let mean = |depth: &serde_json::Value, name: &str| {
        let orders = depth["orders"].as_array().expect("of orders");
        let of = orders.iter().find(|of| of["name"] == name);
        of.expect("all orders")["mean_ms"].as_f64().expect("a mean")
    };
    // Alone, no order is better than another; A(q) <= SPTF <= SSTF <= FCFS else.
    for depth in &depths[1..] {
        let bound = depth["bound_ms"].as_f64().expect("a bound");
        let [sptf, sstf, fcfs] = ["sptf", "sstf", "fcfs"].map(|name| mean(depth, name));
        let in_order = bound * 0.97 <= sptf && sptf <= sstf && sstf <= fcfs;
        assert!(in_order, "{depth}");
    }
    let alone: Vec<f64> = ["sptf", "look", "fcfs"]
        .map(|name| mean(&depths[0], name))
        .to_vec();
    assert!(alone.iter().all(|ms| ms == &alone[0]), "{alone:?}");
    assert!(user.stored().is_empty(), "nothing was run");
}

/// What the drive does and the calculation does not is said.
#[test]
fn the_limits_of_a_disks_queue_are_said() {
    let user = User::new();
    let line = "calculate disk --requests 1000 --depth 64 --order fcfs,sptf";
    let shown = user.run(&words(line)).expect(0, &[]).shows(&[
        "p99 and longest response, ms",
        "without the age limit, at which the drive serves a request next once it has waited 1000 ms",
        "the drive accepts 32 commands in its queue",
        "times its mean response",
    ]);
    assert!(!shown.has("v_scan") && !shown.has("without effect"));
    // What only writes take has no effect on reads; what distances are measured in has.
    let set = "--set drive.age_limit_ms=100 --set drive.write_settle_ms=5 \
        --set drive.head_switch_ms=2 --set drive.queue_distance=sector";
    let shown = user.run(&words(&format!("{line} {set}")));
    let shown = shown.expect(0, &[]);
    let shown = shown.shows(&[
        "without effect on these figures: drive.age_limit_ms=100, drive.write_settle_ms=5",
    ]);
    assert!(!shown.has("head_switch_ms") && !shown.has("queue_distance"));
    let json = user.run(&words(&format!("{line} {set} --format json")));
    let json = json.expect(0, &[]).json();
    assert_eq!(json["queue_depth"], 32);
    assert_eq!(json["age_limit_ms"], 100.0);
    assert_eq!(json["without_effect"][0], "drive.age_limit_ms=100");
}

#[test]
fn a_queue_that_there_is_not_names_its_option() {
    let user = User::new();
    for (options, says) in [
        ("--order elevator", &["--order elevator", "c_look"][..]),
        ("--block 1000", &["--block 1000", "sectors of 4096 bytes"]),
        ("--block 9T", &["--block 9 TiB", "1 GiB at most"]),
        ("--drive 2", &["--drive 2", "1 configured"]),
        (
            "--on vax780-sc780-eagle",
            &[
                "not a disk with a command queue",
                "bare-sas-10k or bare-smr-5400",
            ],
        ),
        ("--depth 0", &["--depth"]),
    ] {
        let all = format!("calculate disk {options}");
        user.run(&words(&all)).expect(2, says);
    }
}

#[test]
fn a_flash_drives_formulas_stand_beside_its_model() {
    let user = User::new();
    let line = "calculate flash --spare 10%,28% --policy fifo,greedy,choices_3,cost_benefit";
    user.run(&words(line)).expect(0, &[]).shows(&[
        "Write amplification: uniform random writes, superblocks of 256 units",
        "choices_3",
        "DWPD",
        "Random reads of 4 KiB from 32 dies, 48.8 µs each",
        "many dies",
        "write buffer, sequential writes",
        "none is known, so only the model's figure is given",
    ]);
    for (format, says) in [
        ("csv", "spare,over_provisioning,policy"),
        ("markdown", "| spare |"),
    ] {
        let all = format!("{line} --depth 8 --format {format}");
        user.run(&words(&all)).expect(0, &[]).shows(&[says]);
    }
    let all = format!("{line} --cache 42GB --arrival-mb-per-s 3300 --buffer 64M --format json");
    let json = user.run(&words(&all)).expect(0, &[]).json();
    for spare in json["spares"].as_array().expect("of spares") {
        for of in spare["policies"].as_array().expect("of policies") {
            let model = of["model"].as_f64().expect("a model");
            match of["formula"].as_f64() {
                Some(formula) => assert!((model / formula - 1.0).abs() < 0.03, "{of}"),
                None => assert_eq!(of["policy"], "cost_benefit"),
            }
        }
    }
    let depths = json["depths"].as_array().expect("of depths");
    for of in depths {
        let [formula, model, bound] =
            ["formula", "model", "bound"].map(|name| of[name].as_f64().expect("a share"));
        assert!(
            (model - formula).abs() < 0.02 && model < bound + 0.01,
            "{of}"
        );
    }
    let cliffs = json["cliffs"].as_array().expect("of cliffs");
    let cache = cliffs.last().expect("a cache");
    let after = cache["full_after_s"].as_f64().expect("a time");
    assert!((after - 42.0 / 3.3).abs() < 0.01, "{cache}");
    assert!(user.stored().is_empty(), "nothing was run");
}

#[test]
fn a_flash_drive_that_there_is_not_names_its_option() {
    let user = User::new();
    for (options, says) in [
        ("--spare 0", &["--spare 0", "never free a superblock"][..]),
        ("--spare 100%", &["--spare 1", "nothing would be mapped"]),
        ("--spare 0.1", &["write 10%"]),
        ("--spare 0.1%", &["--spare 0.001", "0.01 to 0.95"]),
        ("--policy elevator", &["--policy elevator", "cost_benefit"]),
        ("--policy choices_0", &["--policy choices_0"]),
        ("--hot 90", &["--hot 90", "such as 90/10"]),
        ("--hot 0/10", &["--hot 0/10"]),
        ("--depth 0", &["--depth 0", "1 to 4096"]),
        ("--dies 1", &["--dies 1", "a queue needs two"]),
        ("--superblock-units 1", &["--superblock-units 1"]),
        ("--program 1K", &["--program 1024", "a unit at least"]),
        ("--program-us nan", &["--program-us NaN"]),
        ("--trimmed 95%", &["--trimmed 0.95"]),
    ] {
        let all = format!("calculate flash {options}");
        user.run(&words(&all)).expect(2, says);
    }
}

/// A file that is replaced by a new one under its name.
const REPLACE: &str = r#"[{"id": "replace", "profile": "replace",
    "ext4": {"mkopts": [], "mntopts": ""}, "xfs": {"mkopts": [], "mntopts": ""},
    "setup": [["open", "s", "old", ["creat"]], ["pwrite", "s", 0, 10000], ["close", "s"]],
    "seq": [["open", "d0", "new", ["creat"]], ["pwrite", "d0", 0, 10000], ["fsync", "d0"],
            ["close", "d0"], ["rename", "new", "old"], ["fsyncdir", "."]]}]"#;

#[test]
fn bios_of_file_operations_in_every_format() {
    let user = User::new();
    std::fs::write(user.file("replace.json"), REPLACE).unwrap();
    let line = |options: &str| {
        let mut all = vec!["calculate", "requests", "replace.json"];
        all.extend(words(options));
        user.run(&all).expect(0, &[])
    };
    line("").shows(&[
        "replace on ext4, Linux 6.18",
        "W new 0+12 s",
        "replace on xfs, Linux 6.18",
    ]);
    let json = line("--filesystem xfs --kernel 6.1 --format json").json();
    let lists = json["sequences"].as_array().unwrap();
    assert_eq!(lists.len(), 1, "only xfs was asked for");
    assert_eq!(lists[0]["kernel"], "6.1");
    let bios = |operation: usize| lists[0]["operations"][operation]["bios"].clone();
    assert_eq!(bios(1), serde_json::json!([]));
    assert_eq!(bios(2), serde_json::json!(["W new 0+12 s", "J 2.5 pfsm"]));
    line("--format csv").shows(&["replace,ext4,6.18,2,fsync d0,W new 0+12 s"]);
    line("--format markdown").shows(&["| operation | call | bios |"]);
}

#[test]
fn a_fault_of_a_sequence_names_its_file_and_operation() {
    let user = User::new();
    for (text, replaced, names) in [
        (
            "\"fsync\", \"d0\"",
            "\"fsync\", \"d7\"",
            "operation 2 (fsync d7)",
        ),
        ("\"fsyncdir\"", "\"chmod\"", "chmod"),
        ("\"mntopts\": \"\"", "\"mntopts\": \"fastest\"", "fastest"),
    ] {
        std::fs::write(user.file("faulty.json"), REPLACE.replace(text, replaced)).unwrap();
        user.run(&["calculate", "requests", "faulty.json"])
            .expect(2, &["faulty.json: sequence replace", names]);
    }
}
