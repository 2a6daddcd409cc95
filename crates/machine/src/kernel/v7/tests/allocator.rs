//! Which blocks files get on a modelled PC-AT.

use super::super::V7CheckSummary;
use super::super::layout::BLOCK_BYTES;
use crate::calls::OpenFlags;
use crate::errno::Errno;
use crate::kernel::FileSystemView;
use crate::software::Kernel;
use crate::specification::MachineSpecification;
use crate::{Machine, RunConditions, Session, WorkerRendezvous};
use diskperf_catalogue::{Catalogue, Setting};
use std::cell::RefCell;
use std::rc::Rc;

const CREATE: OpenFlags = OpenFlags {
    read: false,
    write: true,
    create: true,
    create_exclusive: false,
    truncate: true,
    direct_io: false,
    dsync: false,
};

fn machine(settings: &[(&str, &str)]) -> Machine {
    let settings: Vec<Setting> = settings
        .iter()
        .map(|(path, text)| Setting {
            path: (*path).to_owned(),
            value_text: (*text).to_owned(),
        })
        .collect();
    let system = Catalogue::embedded()
        .resolve("pcat-st251", &settings)
        .unwrap();
    let (specification, _) = MachineSpecification::read_machine(system).unwrap();
    Machine::build(&specification, RunConditions::default())
}

/// Checks its file system.
fn check(machine: &Machine) -> Result<V7CheckSummary, Vec<String>> {
    let Kernel::Unix(unix) = machine.kernel() else {
        panic!("Xenix is UNIX")
    };
    let FileSystemView::SeventhEdition(v7) = unix.file_system_view() else {
        panic!("Xenix has the file system of the seventh edition")
    };
    v7.check_volume(0)
}

/// Runs a program on a machine, and checks its file system.
fn run<T: 'static>(machine: &Machine, program: impl AsyncFnOnce(&mut Session) -> T + 'static) -> T {
    let kernel = machine.kernel().clone();
    let result = Rc::new(RefCell::new(None));
    let put = Rc::clone(&result);
    machine.spawn_process("program", async move {
        let meeting = WorkerRendezvous::new(1);
        let mut session = Session::begin_session(&kernel, 0, Vec::new(), &meeting).await;
        let done = program(&mut session).await;
        session.flush_volume(0).await;
        session.end_session().await;
        *put.borrow_mut() = Some(done);
    });
    machine.run_to_end().unwrap();
    assert_eq!(check(machine).err(), None);
    result.take().expect("the program came to its end")
}

/// Makes a file of so many blocks; its blocks on the drive.
async fn make(session: &mut Session, path: &str, blocks: usize) -> Vec<u32> {
    let file = session.open_path(path, CREATE).await.unwrap();
    for _ in 0..blocks {
        session.write(file, &[7; BLOCK_BYTES]).await.unwrap();
    }
    let places = blocks_of(session, file, blocks);
    session.close(file).await.unwrap();
    places
}

fn blocks_of(session: &mut Session, file: usize, blocks: usize) -> Vec<u32> {
    let Session::Unix(session) = session else {
        panic!("Xenix runs the UNIX kernel's system calls")
    };
    let node = session.vnode_of_file(file).unwrap();
    let FileSystemView::SeventhEdition(on) = session.kernel.file_system_view() else {
        panic!("Xenix has the file system of the seventh edition")
    };
    let places = on.block_keys(node, (blocks * BLOCK_BYTES) as u64);
    places
        .into_iter()
        .map(|key| key.unwrap().fragment())
        .collect()
}

#[test]
fn a_file_on_a_fresh_file_system_has_the_order_of_mkfs() {
    // 3345 blocks of inodes, and the root's: data from block 3348 on. The
    // eleventh block comes behind the indirect block.
    let fresh = machine(&[]);
    let places = run(&fresh, async |session| {
        make(session, "/mnt0/file", 12).await
    });
    let mut expected: Vec<u32> = (3348..3358).collect();
    expected.extend([3359, 3360]);
    assert_eq!(places, expected);
    // With two blocks between: cylinder 32 has 3264 to 3365.
    let spread = machine(&[("filesystem.gap_blocks", "2")]);
    let places = run(&spread, async |session| {
        make(session, "/mnt0/file", 5).await
    });
    assert_eq!(places, [3351, 3354, 3357, 3360, 3363]);
}

#[test]
fn what_was_freed_last_is_used_first() {
    let machine = machine(&[]);
    run(&machine, async |session| {
        let first = make(session, "/mnt0/first", 4).await;
        let second = make(session, "/mnt0/second", 3).await;
        assert_eq!(second[0], first[3] + 1);
        session.unlink("/mnt0/first").await.unwrap();
        session.unlink("/mnt0/second").await.unwrap();
        // A file's blocks are freed from its end, so its order stays; the
        // files come back in the opposite order.
        let both = make(session, "/mnt0/third", 7).await;
        assert_eq!(both[..3], second);
        assert_eq!(both[3..], first);
    });
}

#[test]
fn a_chain_of_free_blocks_survives_more_than_it_names() {
    let machine = machine(&[("drive.partition_sectors", "2000")]);
    let before = check(&machine).unwrap();
    let (full, errno) = run(&machine, async |session| {
        let kept = make(session, "/mnt0/kept", 300).await;
        make(session, "/mnt0/gone", 700).await;
        session.unlink("/mnt0/gone").await.unwrap();
        // Until there is no more: the blocks of the other stay its own.
        let file = session.open_path("/mnt0/full", CREATE).await.unwrap();
        let mut count = 0;
        let errno = loop {
            match session.write(file, &[9; BLOCK_BYTES]).await {
                Ok(_) => count += 1,
                Err(errno) => break errno,
            }
        };
        let places = blocks_of(session, file, count);
        assert!(kept.iter().all(|block| !places.contains(block)));
        session.close(file).await.unwrap();
        (count, errno)
    });
    assert_eq!(errno, Errno::NoSpace);
    let after = check(&machine).unwrap();
    assert_eq!(after.free_block_count, 0);
    assert_eq!(after.used_block_count, before.free_block_count + 1);
    // Three indirect blocks of the one, and more than ten of the other.
    assert!(full as u32 > before.free_block_count - 330, "{full}");
}

#[test]
fn inodes_are_found_from_the_start_of_their_list() {
    let machine = machine(&[("drive.partition_sectors", "2000")]);
    // 80 blocks of 8, less the file of bad blocks and the root.
    let made = run(&machine, async |session| {
        let mut made = 0;
        while let Ok(file) = session.open_path(&format!("/mnt0/{made}"), CREATE).await {
            session.close(file).await.unwrap();
            made += 1;
        }
        for number in 0..made {
            session.unlink(&format!("/mnt0/{number}")).await.unwrap();
        }
        for number in 0..made {
            make(session, &format!("/mnt0/again{number}"), 1).await;
        }
        made
    });
    assert_eq!(made, 80 * 8 - 2);
}

#[test]
fn a_removed_file_that_is_open_keeps_its_blocks() {
    let machine = machine(&[]);
    run(&machine, async |session| {
        let file = session.open_path("/mnt0/file", CREATE).await.unwrap();
        session.write(file, &[7; 9000]).await.unwrap();
        session.unlink("/mnt0/file").await.unwrap();
        let others = make(session, "/mnt0/other", 20).await;
        let own = blocks_of(session, file, 18);
        assert!(own.iter().all(|block| !others.contains(block)));
        session.close(file).await.unwrap();
    });
    assert_eq!(check(&machine).unwrap().file_count, 1);
}
