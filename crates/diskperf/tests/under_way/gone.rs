//! Storage that goes away.

use crate::support::User;
use crate::support::machine::{LoopDevice, Needs, can_run, fill};
use crate::support::shown::Shown;
use crate::{ENGINES, assert_failed, endless, measuring};

#[test]
fn a_server_that_is_killed() {
    let needs = [Needs::Fuse, Needs::Tool("bindfs")];
    if !can_run("a_server_that_is_killed", &needs) {
        return;
    }
    for engine in ENGINES {
        let user = User::new();
        let mut served = Shown::by_bindfs(&user);
        let more = format!("--set program.write_share=0.5 --set program.engine={engine}");
        let process = measuring(&user, &endless("./target", &more));
        served.kill();
        let said = ["random", "has ended", "is left", "diskperf clean"];
        let outcome = process.finish().expect(1, &said);
        assert_failed(&user, "has ended", &outcome);
        drop(served);
        let served = Shown::by_bindfs(&user);
        let cleaned = user.run(&["clean"]).expect(0, &[]);
        assert!(cleaned.stdout.contains("removed"), "{cleaned:?}");
        user.assert_nothing_left(engine);
        served.expect_nothing_behind();
    }
}

/// The half of its blocks beyond the end of its file fail.
#[test]
fn a_device_that_loses_its_file() {
    if !can_run("a_device_that_loses_its_file", &[Needs::LoopDevices]) {
        return;
    }
    for engine in ENGINES {
        let user = User::new();
        let image = user.file("image");
        fill(&image, 8, 0x5a);
        let device = LoopDevice::over(&image, &["--direct-io=on"]);
        let more = format!("--direct --set program.engine={engine}");
        let process = measuring(&user, &endless(&device.text(), &more));
        let file = std::fs::File::options().write(true).open(&image).unwrap();
        file.set_len(2 << 20).unwrap();
        let said = ["random", "read", &device.text(), "EIO", "dmesg"];
        let outcome = process.finish().expect(1, &said);
        assert_failed(&user, "EIO", &outcome);
    }
}

/// It goes on as long as somebody has it open, and then there is no device.
#[test]
fn a_device_that_is_detached() {
    if !can_run("a_device_that_is_detached", &[Needs::LoopDevices]) {
        return;
    }
    let user = User::new();
    let image = user.file("image");
    fill(&image, 8, 0x5a);
    let device = LoopDevice::over(&image, &["--direct-io=on"]);
    let name = device.text();
    let process = measuring(&user, &endless(&name, "--direct"));
    // The kernel detaches it when the last who has it open has closed it.
    drop(device);
    let outcome = process.finish().expect(1, &["random", &name, "dmesg"]);
    // Of a file that was open when it went, or of one that was opened then.
    let mut why = ["EIO", "ENXIO"].into_iter();
    let why = why.find(|why| outcome.stderr.contains(why));
    assert_failed(&user, why.expect("the cause is named"), &outcome);
}
