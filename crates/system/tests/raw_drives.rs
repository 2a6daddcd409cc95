//! A modelled drive by itself, past the buffer cache: on every controller, what
//! is written is read back, and the limits are those of a raw device.

mod modelled;

use diskperf_system::{Errno, OpenOptions, SeekOrigin};
use modelled::{ports_alone, run_alone, specification};

/// One system of each kind of controller.
const SYSTEMS: [&str; 6] = [
    "vax780-sc780-eagle",
    "vax780-uda50-ra81",
    "pcat-st251",
    "sun3-rimfire-2344",
    "sun3-cheetah-2344",
    "sun3-xy451-eagle",
];

const DRIVE: &str = "/dev/drive0";
const READ_WRITE: OpenOptions = OpenOptions {
    write: true,
    ..OpenOptions::READ
};

#[test]
fn what_is_written_is_read_back_in_calls_of_any_whole_sectors() {
    for system in SYSTEMS {
        let specification = specification(system, &["filesystem=none"]);
        let machine = modelled::machine(&specification);
        let read = run_alone(&machine, ports_alone(), async |mut system| {
            let file = system
                .open(DRIVE, READ_WRITE.with_direct(true))
                .await
                .unwrap();
            // Longer than one transfer may be.
            let data: Vec<u8> = (0..200 * 512).map(|byte| (byte % 251) as u8).collect();
            system
                .lseek(file, 512, SeekOrigin::FileStart)
                .await
                .unwrap();
            assert_eq!(system.write(file, &data).await, Ok(data.len()));
            system.lseek(file, 0, SeekOrigin::FileStart).await.unwrap();
            let mut all = vec![1; 202 * 512];
            let mut done = 0;
            for sectors in [1, 3, 17, 181] {
                let part = &mut all[done..done + sectors * 512];
                assert_eq!(system.read(file, part).await, Ok(sectors * 512));
                done += sectors * 512;
            }
            let fits = all[..512].iter().all(|byte| *byte == 0)
                && all[512..201 * 512] == data[..]
                && all[201 * 512..].iter().all(|byte| *byte == 0);
            (system, fits)
        });
        assert!(read.unwrap(), "{system}");
        assert!(
            machine.statistics().drive_statistics[0].request_count >= 6,
            "{system}"
        );
    }
}

/// Sectors that do not divide the longest transfer, and one that is longer.
#[test]
fn a_transfer_is_of_whole_sectors_whatever_their_size() {
    for sector_bytes in [2048, 65_536] {
        let settings = [
            "filesystem=none".to_owned(),
            format!("drive.sector_bytes={sector_bytes}"),
        ];
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let machine = modelled::machine(&specification("pcat-st251", &settings));
        let length = 5 * 65_536;
        let fits = run_alone(&machine, ports_alone(), async move |mut system| {
            let file = system
                .open(DRIVE, READ_WRITE.with_direct(true))
                .await
                .unwrap();
            let data: Vec<u8> = (0..length).map(|byte| (byte % 251) as u8).collect();
            assert_eq!(system.write(file, &data).await, Ok(length));
            system.lseek(file, 0, SeekOrigin::FileStart).await.unwrap();
            let mut back = vec![0; length];
            assert_eq!(system.read(file, &mut back).await, Ok(length));
            (system, back == data)
        });
        assert!(fits.unwrap(), "{sector_bytes}");
        let drive = machine.statistics().drive_statistics[0];
        assert_eq!(drive.read_sectors * sector_bytes, length as u64);
        assert_eq!(drive.written_sectors * sector_bytes, length as u64);
    }
}

#[test]
fn part_of_a_sector_and_what_is_beyond_the_end_are_refused() {
    let specification = specification("pcat-st251", &["filesystem=none"]);
    let machine = modelled::machine(&specification);
    let done = run_alone(&machine, ports_alone(), async |mut system| {
        let file = system
            .open(DRIVE, READ_WRITE.with_direct(true))
            .await
            .unwrap();
        let mut buffer = [0; 1024];
        let errno = |result: diskperf_system::Result<usize>| result.unwrap_err().errno();
        assert_eq!(
            errno(system.read(file, &mut buffer[..100]).await),
            Some(Errno::Invalid)
        );
        system
            .lseek(file, 100, SeekOrigin::FileStart)
            .await
            .unwrap();
        assert_eq!(
            errno(system.read(file, &mut buffer).await),
            Some(Errno::Invalid)
        );
        let length = system.file_length(file).await.unwrap();
        assert_eq!(length, 820 * 102 * 512);
        system.lseek(file, -512, SeekOrigin::FileEnd).await.unwrap();
        assert_eq!(system.read(file, &mut buffer).await, Ok(512));
        assert_eq!(system.read(file, &mut buffer).await, Ok(0));
        assert_eq!(
            errno(system.write(file, &buffer).await),
            Some(Errno::NoSpace)
        );
        (system, true)
    });
    assert!(done.unwrap());
}

#[test]
fn a_mounted_drive_is_read_only_past_its_file_system() {
    let machine = modelled::machine(&specification("vax780-sc780-eagle", &[]));
    let done = run_alone(&machine, ports_alone(), async |mut system| {
        let file = system
            .open(DRIVE, READ_WRITE.with_direct(true))
            .await
            .unwrap();
        let buffer = [0; 512];
        let refused = system.write(file, &buffer).await.unwrap_err();
        assert_eq!(refused.errno(), Some(Errno::Busy));
        let cached = system.open(DRIVE, OpenOptions::READ).await.unwrap_err();
        assert_eq!(cached.errno(), Some(Errno::NotDirect));
        let none = system
            .open("/dev/drive7", OpenOptions::READ.with_direct(true))
            .await;
        assert_eq!(none.unwrap_err().errno(), Some(Errno::NoEntry));
        (system, true)
    });
    assert!(done.unwrap());
    modelled::expect_sound(&machine, 1);
}
