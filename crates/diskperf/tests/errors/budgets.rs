//! What asks for more than a machine has, or comes to no end, is refused or ended
//! with the reason. Memory is limited by the shell that starts diskperf.

use crate::support::User;
use std::fmt::Write;
use std::process::Command;

#[test]
fn virtual_time_without_end_is_ended_with_what_it_went_to() {
    let line = "run random --on bare-fixed --set drive.service_ms=10000 --size 1G";
    let words: Vec<&str> = line.split(' ').collect();
    let said = [
        "7.0 days of virtual time",
        "most of it in command",
        "drive.*_ms",
        "--no-budget",
        "drive.service_ms is 10000, 10000 times the 1 of bare-fixed",
    ];
    User::new().run(&words).expect(1, &said);
}

/// A value within its range may make a system so slow, or so large, that its run takes minutes:
/// it ends, and the message names the key and how far it is from what was there before.
#[test]
fn a_setting_far_from_its_default_is_ended_and_named() {
    for (line, code, said) in [
        (
            "run metadata --on vax780-sc780-eagle --set driver.complete_ms=10000",
            1,
            [
                "events in all repetitions",
                "--no-budget",
                "driver.complete_ms is 10000, 21978 times the 0.455 of vax780-sc780-eagle",
            ],
        ),
        (
            "run read_8192 --on atarist-supra:driver-read-ahead --set kernel.cache_blocks=1000000",
            2,
            [
                "MiB of memory",
                "kernel.cache_blocks alone",
                "kernel.cache_blocks is 1000000, ",
            ],
        ),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        User::new().run(&words).expect(code, &said);
    }
}

#[test]
fn a_machine_of_terabytes_is_refused_before_it_is_built() {
    let words = [
        "run",
        "ffs83",
        "--on",
        "vax780-sc780-eagle",
        "--set",
        "drive.cylinders=1000000",
        "--set",
        "drive.heads=16",
        "--set",
        "drive.sectors_per_track=255",
        "--set",
        "drive.partition_sectors=2147483647",
        "--set",
        "filesystem.cylinders_per_group=8",
    ];
    let said = ["drive.partition_sectors", "MiB", "--no-budget"];
    User::new().run(&words).expect(2, &said);
}

/// Six thousand zones of a hundred thousand sectors each.
#[test]
fn a_catalogue_of_many_zones_takes_no_memory_for_each_sector() {
    let user = User::new();
    let mut zones = String::new();
    for zone in 0..6000 {
        write!(zones, "[{zone}, {}], ", 100_000 - zone).expect("a string takes it");
    }
    let text = format!(
        "extends = \"vax780-sc780-eagle\"\n\
         description = \"Many zones.\"\n\
         [components]\nfilesystem = \"none\"\n\
         [drive]\ncylinders = 1000000\nsectors_per_track = 100000\ninterleave = 2\n\
         zones = [{zones}]\n"
    );
    std::fs::write(user.file("zones.toml"), text).expect("the directory can be written");
    let diskperf = user.command(&["show", "./zones.toml"]);
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "ulimit -v 600000; exec \"$@\"", "sh"])
        .arg(diskperf.get_program())
        .args(diskperf.get_args())
        .current_dir(user.home());
    let output = limited.output().expect("there is a shell");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("zones"));
}

/// The calculation is done; what its machines would take is said.
#[test]
fn an_interleave_of_endless_services_is_calculated_and_not_modelled() {
    let words = [
        "calculate",
        "interleave",
        "--serial-lines=1",
        "--cpu-speed=0.5",
        "--reschedule-ms=10000",
    ];
    let said = ["not compared", "interrupts", "reschedule", "--no-budget"];
    let outcome = User::new().run(&words).expect(0, &said);
    outcome.shows(&["recommended: factor 1"]);
}

#[test]
fn interrupts_that_are_too_many_to_follow_are_refused() {
    let words = [
        "calculate",
        "interleave",
        "--reschedule-ms=1",
        "--rpm=60",
        "--serial-lines=64",
        "--baud=1000000",
        "--serial=dma",
        "--serial-done-us-per-char=0",
        "--serial-buffer-chars=1",
    ];
    let said = ["--serial-lines", "steps", "--no-budget"];
    User::new().run(&words).expect(2, &said);
}
