//! Cloud volumes on the command line: runs on them, and the calculation of what carries a load.

use crate::support::User;

const DAY: &str = "[global]
ioengine=libaio
direct=1
rw=randread
bs=16k
iodepth=32
size=20g
time_based
[day]
rate_iops=500
runtime=8h
[night]
stonewall
rate_iops=100
runtime=16h
";

#[test]
fn a_day_ends_the_credits_of_gp2_in_every_format() {
    let user = User::new();
    std::fs::write(user.file("day.fio"), DAY).unwrap();
    let with = |options: &[&str]| {
        let all = [&["calculate", "volume", "./day.fio"], options].concat();
        user.run(&all).expect(0, &[])
    };
    with(&["--volume", "gp2:100GiB"]).shows(&[
        "for 7 d, 24 h repeated: 233 requests/s on average, 500 at most, of 16 KiB, 100 % reads",
        "falls behind",
        "7.5 h",
        "the volume's limit of requests/s, without credits",
    ]);
    let json = with(&["--volume", "gp2:100GiB,gp3", "--format", "json"]).json();
    let [gp3, gp2] = &json["volumes"].as_array().unwrap()[..] else {
        panic!("{json}");
    };
    assert_eq!(
        (&gp3["verdict"], &gp2["verdict"]),
        (&"carries".into(), &"falls_behind".into())
    );
    assert_eq!(gp2["credits_end_s"], 27_000.0);
    assert_eq!(gp2["wait_max_s"], 1200.0);
    assert_eq!(gp2["credits_left_share"], 1.0);
    for (format, says) in [
        ("csv", "volume,size_gib,settings"),
        ("markdown", "| volume"),
    ] {
        with(&["--format", format]).shows(&[says, "standard-ssd"]);
    }
    assert!(user.stored().is_empty(), "nothing was run");
}

#[test]
fn a_volume_runs_suites_job_files_and_traces() {
    let user = User::new();
    let web: String = (0..200)
        .map(|at| {
            format!(
                "{},web,0,Read,{},4096,1500\n",
                128_166_400_000_000_000_u64 + at * 10_000,
                at * 65_536
            )
        })
        .collect();
    std::fs::write(user.file("web.csv"), web).unwrap();
    let job = "[reads]\nrw=randread\nbs=16k\nsize=64m\nnumber_ios=400\ndirect=1\nioengine=libaio\niodepth=8\n";
    std::fs::write(user.file("reads.fio"), job).unwrap();
    for system in [
        "bare-gp3",
        "bare-st1",
        "bare-pd-standard",
        "bare-premium-ssd",
    ] {
        for what in [
            &["run", "today26", "--size", "1M"][..],
            &["run", "./reads.fio"],
            &["replay", "./web.csv"],
        ] {
            let all = [what, &["--on", system, "--runs", "1", "--quiet"]].concat();
            user.run(&all).expect(0, &[]).shows(&[system]);
        }
    }
    let limited = "explain bare-gp2 --suite random --direct --size 16M --runs 1 --set program.depth=32 --set drive.credits_at_start_share=0";
    let words: Vec<&str> = limited.split(' ').collect();
    user.run(&words)
        .expect(0, &[])
        .shows(&["the volume's limit of requests/s", "no limit of the volume"]);
}

#[test]
fn what_is_no_volume_or_no_load_is_refused_with_the_remedy() {
    let user = User::new();
    std::fs::write(user.file("day.fio"), DAY.replace("time_based\n", "")).unwrap();
    std::fs::write(user.file("large.fio"), DAY).unwrap();
    for (options, says) in [
        (&["./day.fio"][..], "the job has no end in time"),
        (&["./day.fio", "--volume", "gp4"], "no volume `gp4`"),
        (&["./day.fio", "--volume", "gp2:17TiB"], "1 to 16384 GiB"),
        (
            &["./large.fio", "--volume", "gp2:9GiB"],
            "take 40 GiB; give a larger size",
        ),
        (&["./absent.fio"], "absent.fio"),
        (&["./absent.csv"], "absent.csv"),
    ] {
        let all = [&["calculate", "volume"], options].concat();
        user.run(&all).expect(2, &[says]);
    }
}

#[test]
fn a_trace_is_a_load_of_volumes_too() {
    let user = User::new();
    let web: String = (0..2000_u64)
        .map(|at| {
            format!(
                "{},web,0,Read,{},4096,1500\n",
                128_166_400_000_000_000_u64 + at * 20_000,
                at * 65_536
            )
        })
        .collect();
    std::fs::write(user.file("web.csv"), web).unwrap();
    let with = |volume: &str| {
        let all = format!("calculate volume ./web.csv --for 10m --format json --volume {volume}");
        let words: Vec<&str> = all.split(' ').collect();
        user.run(&words).expect(0, &[]).json()
    };
    let found = with("gp3,gp2:10GiB");
    assert_eq!(found["load"]["is_open"], true, "{found}");
    let mean = found["load"]["iops_mean"].as_f64().unwrap();
    assert!((mean - 500.0).abs() < 1.0, "{mean}");
    let verdicts: Vec<&str> = found["volumes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["verdict"].as_str().unwrap())
        .collect();
    assert_eq!(verdicts, ["carries", "carries"], "{found}");
    // Without credits it gives 100 requests/s.
    let all = "calculate volume ./web.csv --for 10m --volume gp2:10GiB --set drive.credits_at_start_share=0";
    let words: Vec<&str> = all.split(' ').collect();
    user.run(&words).expect(0, &[]).shows(&[
        "not carried",
        "the backlog grows from one repetition to the next",
    ]);
}

#[test]
fn a_run_finds_the_limit_of_a_volume_and_a_gate_does_not_fail_at_it() {
    let user = User::new();
    let measure = |label: &str, options: &str| {
        let all = format!(
            "run random --direct --on bare-gp2 --set program.depth=32 --size 64M --runs 1 --find-limits --label {label} {options}"
        );
        let words: Vec<&str> = all.split_whitespace().collect();
        user.run(&words).expect(0, &[])
    };
    measure("burst", "--volume gp2:100GiB").shows(&[
        "depth=32: limit of 3000 requests/s",
        "that of gp2:100GiB: requests/s of the volume",
        "this is burst: full credits last for about 33 min, then 300 requests/s",
        "note on 4 KiB random read, QD32: at the limit of 3000 requests/s",
    ]);
    let json = measure(
        "base",
        "--set drive.credits_at_start_share=0 --format json --volume gp2:100GiB",
    )
    .json();
    let [row, probe] = &json["runs"][0]["results"].as_array().unwrap()[..] else {
        panic!("{json}");
    };
    assert_eq!(probe["cap"]["verdict"], "capped", "{}", probe["cap"]);
    assert_eq!(probe["cap"]["unit"], "requests");
    assert_eq!(probe["cap"]["per_s"].as_f64().unwrap().round(), 300.0);
    assert_eq!(probe["cap"]["outlook"]["outlook"], "steady");
    assert_eq!(row["at_cap"]["per_s"], probe["cap"]["per_s"]);
    let gate = ["compare", "burst", "base", "--fail-over", "5%"];
    user.run(&gate)
        .expect(0, &[])
        .shows(&["capped", "both are at a cap"]);
}

#[test]
fn limits_are_looked_for_where_they_can_be() {
    let user = User::new();
    for (command, says) in [
        (
            "run read_8192 --on vax780-sc780-eagle --size 64K --find-limits",
            "--find-limits probes random and sequential programs",
        ),
        (
            "run random --on bare-gp2 --volume gp2:100GiB",
            "add --find-limits",
        ),
        (
            "run cap_probe --on bare-gp2 --volume gp9:100GiB",
            "the catalogue has no volume `gp9`",
        ),
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        user.run(&words).expect(2, &[says]);
    }
    let flash = "run cap_probe --on bare-nvme-tlc --set program.depth=4 --set program.rounds=14 --set drive.past=random";
    let words: Vec<&str> = flash.split(' ').collect();
    user.run(&words).expect(0, &[]).shows(&["no limit"]);
}
