//! Consistency of a file system in memory, checked after each of random calls.

use crate::block::{DeviceLimits, FileId};
use crate::effect::{CallContext, Effects};
use crate::file_system::{FileKind, FileName, FileSystemCalls, FileSystemError};
use crate::operation::{ByteRange, FallocateMode};
use crate::page_cache::PAGE_BYTES;
use crate::request_list::describe_bios;
use crate::stack::ROOT;
use crate::version::{Host, KernelVersion};
use crate::xfs::geometry::{CHUNK_BLOCKS, FreeExtent};
use crate::xfs::inode::XfsInode;
use crate::xfs::{Xfs, XfsOptions};

/// Blocks with one owner: free, or of a file.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct OwnedBlocks {
    first: u64,
    length: u64,
    owner: String,
}

/// Returns what is inconsistent, if anything is.
fn check(xfs: &Xfs) -> Result<(), String> {
    for (file, inode) in &xfs.files {
        check_inode(inode).map_err(|error| format!("file {}: {error}", file.0))?;
    }
    let mut owned = free_blocks(xfs)?;
    owned.extend(used_blocks(xfs));
    owned.sort();
    for pair in owned.windows(2) {
        if pair[0].first + pair[0].length > pair[1].first {
            return Err(format!("{:?} overlaps {:?}", pair[0], pair[1]));
        }
    }
    let total: u64 = owned.iter().map(|blocks| blocks.length).sum();
    let made = (0..xfs.geometry.groups()).flat_map(|group| xfs.geometry.free_extents(group));
    let expected: u64 = made.map(|extent| extent.length).sum();
    if total == expected {
        Ok(())
    } else {
        Err(format!("{total} of {expected} blocks are owned"))
    }
}

fn check_inode(inode: &XfsInode) -> Result<(), String> {
    let end = inode.size.div_ceil(PAGE_BYTES);
    for block in inode.cache.dirty_blocks(0..u64::MAX / PAGE_BYTES) {
        if block < end && inode.extents.at(block).is_none() {
            return Err(format!("dirty block {block} has no extent"));
        }
    }
    let extents = inode.extents.as_slice().iter();
    let delayed: u64 = extents
        .filter(|extent| extent.is_delayed())
        .map(|extent| extent.length)
        .sum();
    if delayed != inode.extents.delayed_blocks() {
        return Err(format!("{delayed} blocks are delayed"));
    }
    if inode.disk_size > inode.size {
        return Err(format!(
            "{} of {} bytes are logged",
            inode.disk_size, inode.size
        ));
    }
    Ok(())
}

/// Free blocks of all groups.
fn free_blocks(xfs: &Xfs) -> Result<Vec<OwnedBlocks>, String> {
    let mut owned = Vec::new();
    for (group, members) in xfs.groups.iter().enumerate() {
        let start = group as u64 * xfs.geometry.group_blocks;
        let extents = members.space.by_length();
        let free: u64 = extents.iter().map(|extent| extent.length).sum();
        if free != members.space.blocks() {
            return Err(format!("group {group}: {free} blocks are free"));
        }
        owned.extend(
            extents
                .into_iter()
                .map(|FreeExtent { first, length }| OwnedBlocks {
                    first: start + first,
                    length,
                    owner: "nobody".to_owned(),
                }),
        );
    }
    Ok(owned)
}

/// Blocks of inodes, of data, and of trees of extents.
fn used_blocks(xfs: &Xfs) -> Vec<OwnedBlocks> {
    let mut owned = Vec::new();
    for (group, members) in xfs.groups.iter().enumerate() {
        let start = group as u64 * xfs.geometry.group_blocks;
        owned.extend(members.inodes.chunk_blocks().map(|first| OwnedBlocks {
            first: start + first,
            length: CHUNK_BLOCKS,
            owner: "inodes".to_owned(),
        }));
    }
    for (file, inode) in &xfs.files {
        let own = |first, length| OwnedBlocks {
            first,
            length,
            owner: format!("file {}", file.0),
        };
        let extents = inode.extents.as_slice().iter();
        owned.extend(extents.filter_map(|extent| Some(own(extent.block()?, extent.length))));
        owned.extend(inode.tree.iter().map(|tree| own(tree.block(), 1)));
    }
    owned
}

/// Numbers of a sequence that a seed gives (splitmix64).
struct Draws(u64);

impl Draws {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % limit.max(1)
    }

    fn range(&mut self, size: u64) -> ByteRange {
        let lengths = [100, 512, 4096, 10_000, 65_536, 300_000, 3 << 20];
        let length = lengths[self.below(lengths.len() as u64) as usize];
        let offset = self.below(size + 200_000);
        let is_aligned = self.below(2) == 0;
        let offset = if is_aligned {
            offset / PAGE_BYTES * PAGE_BYTES
        } else {
            offset
        };
        ByteRange { offset, length }
    }
}

fn host(version: KernelVersion) -> Host {
    Host {
        version,
        ticks_per_second: 250,
        processors: 2,
    }
}

fn entry(file: FileId) -> FileName {
    FileName {
        directory: ROOT,
        name: format!("file-{}", file.0),
    }
}

/// Runs `count` random calls. Returns the list of requests.
fn run_random_calls(version: KernelVersion, seed: u64, count: u32) -> Vec<String> {
    let host = host(version);
    let mut xfs = Xfs::new(
        &host,
        &DeviceLimits::loop_device(512 << 20),
        XfsOptions::default(),
    )
    .expect("it is modelled");
    let (mut draws, mut effects) = (Draws(seed), Effects::default());
    let mut open: Vec<FileId> = Vec::new();
    for call in 1..=count {
        let now_ns = u64::from(call) * 20_000_000;
        let mut context = CallContext {
            host: &host,
            now_ns,
            effects: &mut effects,
        };
        let result = run_random_call(&mut xfs, &mut context, &mut draws, &mut open, FileId(call));
        if let Err(error) = result {
            assert!(
                matches!(error, FileSystemError::Unsupported { .. }),
                "{error}"
            );
        }
        xfs.advance(&mut context).expect("workers run");
        check(&xfs).unwrap_or_else(|error| panic!("seed {seed}, call {call}: {error}"));
    }
    describe_bios(effects.bios(), |_| "f")
}

fn run_random_call(
    xfs: &mut Xfs,
    context: &mut CallContext<'_>,
    draws: &mut Draws,
    open: &mut Vec<FileId>,
    new: FileId,
) -> Result<(), FileSystemError> {
    let choice = draws.below(16);
    if open.len() < 3 || choice == 0 {
        open.push(new);
        return xfs.create(context, &entry(new), new, FileKind::Regular);
    }
    let index = draws.below(open.len() as u64) as usize;
    let file = open[index];
    let range = draws.range(xfs.size(file));
    let whole = ByteRange {
        offset: range.offset / 4096 * 4096,
        length: range.length.next_multiple_of(4096),
    };
    match choice {
        1..=4 => xfs.write(context, file, range),
        5 => xfs.write_direct(context, file, whole, false).map(|_| ()),
        6 => xfs.truncate(context, file, range.offset),
        7 => xfs.fallocate(context, file, FallocateMode::PunchHole, range, false),
        8 => xfs.fallocate(context, file, FallocateMode::ZeroRange, range, false),
        9 => xfs.fallocate(context, file, FallocateMode::KeepSize, range, true),
        10 => xfs.sync_all(context),
        11 => xfs.drop_pages(context, file, range),
        12 => xfs.close(context, file, true, 0),
        13 => {
            open.swap_remove(index);
            xfs.unlink(context, &entry(file), file)?;
            xfs.evict(context, file)
        }
        14 => xfs.read_direct(context, file, whole),
        _ => xfs.sync(context, file, ByteRange::ALL, draws.below(2) == 0),
    }
}

#[test]
fn random_calls_leave_each_block_with_one_owner() {
    for version in [
        KernelVersion::V6_1,
        KernelVersion::V6_12,
        KernelVersion::V6_18,
    ] {
        for seed in 0..6 {
            run_random_calls(version, seed, 120);
        }
    }
}

#[test]
fn one_seed_makes_one_list() {
    let lists = [(); 2].map(|()| run_random_calls(KernelVersion::V6_18, 7, 100));
    assert_eq!(lists[0], lists[1]);
    assert_ne!(lists[0], run_random_calls(KernelVersion::V6_18, 8, 100));
}

#[test]
fn a_block_with_two_owners_is_found() {
    let host = host(KernelVersion::V6_18);
    let mut xfs = Xfs::new(
        &host,
        &DeviceLimits::loop_device(512 << 20),
        XfsOptions::default(),
    )
    .expect("it is modelled");
    let mut effects = Effects::default();
    let mut context = CallContext {
        host: &host,
        now_ns: 0,
        effects: &mut effects,
    };
    let file = FileId(1);
    xfs.create(&mut context, &entry(file), file, FileKind::Regular)
        .expect("there is space");
    xfs.write_direct(
        &mut context,
        file,
        ByteRange {
            offset: 0,
            length: 65_536,
        },
        false,
    )
    .expect("there is space");
    check(&xfs).expect("it is consistent");
    let copy = xfs.inode(file).clone();
    xfs.files.insert(FileId(2), copy);
    assert!(check(&xfs).is_err_and(|error| error.contains("overlaps")));
}

#[test]
fn a_log_that_fills_writes_its_oldest_metadata_in_place() {
    let host = host(KernelVersion::V6_18);
    let mut options = XfsOptions::default();
    options.make.log_stripe_bytes = Some(256 << 10);
    let mut xfs =
        Xfs::new(&host, &DeviceLimits::loop_device(512 << 20), options).expect("it is modelled");
    let mut effects = Effects::default();
    let file = FileId(1);
    let range = ByteRange {
        offset: 0,
        length: 4096,
    };
    let mut records = 0;
    let mut records_before_push = None;
    for call in 1..300 {
        let now_ns = call * 20_000_000;
        let mut context = CallContext {
            host: &host,
            now_ns,
            effects: &mut effects,
        };
        if call == 1 {
            xfs.create(&mut context, &entry(file), file, FileKind::Regular)
                .expect("there is space");
        }
        xfs.write_direct(&mut context, file, range, false)
            .expect("there is space");
        xfs.sync(&mut context, file, range, false)
            .expect("it is modelled");
        records += 1;
        let lists = describe_bios(effects.bios(), |_| "f");
        if lists.iter().any(|line| line.starts_with("M agi")) {
            records_before_push.get_or_insert(records);
        }
        effects = Effects::default();
    }
    // The first record of 256 KiB that begins more than three quarters of 64 MiB behind the first.
    assert_eq!(records_before_push, Some(194));
}
