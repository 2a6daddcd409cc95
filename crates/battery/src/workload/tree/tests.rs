use super::*;

const SEED_001: u64 = 91_000_000;

fn tree(content_bytes: u64, seed: u64) -> Tree {
    Tree::new(TreeDescription {
        content_bytes,
        seed,
    })
}

fn mean_bytes(tree: &Tree) -> f64 {
    tree.description.content_bytes as f64 / tree.iter_files().count() as f64
}

#[test]
fn a_kind_is_one_tree() {
    assert_eq!(tree(8 << 20, 7), tree(8 << 20, 7));
    assert_ne!(tree(8 << 20, 7), tree(8 << 20, 8));
    for content_bytes in [1, 4096, 1 << 20, (8 << 20) + 1] {
        let sum: u64 = tree(content_bytes, 1)
            .iter_files()
            .map(|(_, file)| file.size_bytes)
            .sum();
        assert_eq!(sum, content_bytes);
    }
}

#[test]
fn sizes_have_the_stated_mean_and_tail_for_every_seed() {
    let mut means = Vec::new();
    for seed in 0..20 {
        let tree = tree(SEED_001, seed);
        let mean = mean_bytes(&tree);
        assert!((14_000.0..22_000.0).contains(&mean), "seed {seed}: {mean}");
        let files = tree.iter_files().count() as f64;
        let below = |bytes: u64| {
            let small = tree
                .iter_files()
                .filter(|(_, file)| file.size_bytes < bytes);
            small.count() as f64 / files
        };
        let median = below(FILE_BYTES_MEDIAN as u64);
        assert!((0.47..0.53).contains(&median), "seed {seed}: {median}");
        let small = below(10 * 1024);
        assert!((0.70..0.80).contains(&small), "seed {seed}: {small}");
        let directories = tree.directories.len();
        assert!((400..620).contains(&directories), "{directories}");
        means.push(mean);
    }
    let mean = means.iter().sum::<f64>() / means.len() as f64;
    assert!((15_000.0..20_000.0).contains(&mean), "{mean}");
}

#[test]
fn names_are_told_apart_and_parents_come_first() {
    let tree = tree(SEED_001, 3);
    let mut known = BTreeSet::from([String::new()]);
    for directory in &tree.directories[1..] {
        let parent = directory.path.rsplit_once('/').map_or("", |split| split.0);
        assert_eq!(tree.directories[directory.parent_index].path, parent);
        assert!(known.contains(parent), "{}", directory.path);
        assert!(known.insert(directory.path.clone()), "{}", directory.path);
        assert!(directory.path.split('/').count() <= DIRECTORY_DEPTH_MAX);
    }
    for (number, (path, file)) in tree.iter_files().enumerate() {
        assert!(known.insert(path.clone()), "{path}");
        assert_eq!(file.file_number, number as u64);
    }
}

#[test]
fn the_room_is_enough() {
    for (content_bytes, seed) in [(1 << 20, 1), (8 << 20, 2), (SEED_001, 3), (SEED_001, 4)] {
        let tree = tree(content_bytes, seed);
        let layout = tree.layout_on_image(content_bytes * 2 + (2 << 20)).unwrap();
        let (used, room) = (layout.used_bytes(), footprint_bytes_max(content_bytes));
        assert!(used < room, "{content_bytes}: {used} of {room}");
    }
}

/// The file system of Zachariassen 1987: 137,460 KB on 280,395 sectors, of which 90,838
/// to 95,010 are used. What is known of its fsck was fitted to ten times of it:
/// 1940 reads, half of them of what was read before.
#[test]
fn fsck_reads_about_what_seed_001_tells() {
    use diskperf_system::FsckPass;
    let kind = TreeDescription {
        content_bytes: DEFAULT_TREE_BYTES,
        seed: 1,
    };
    let layout = Tree::new(kind).layout_on_image(280_395 * 512).unwrap();
    let reads = layout.fsck_reads();
    let mut seen = BTreeSet::new();
    let again = reads.iter().filter(|read| !seen.insert(read.extent));
    let again = again.count();
    let of = |pass: FsckPass| reads.iter().filter(|read| read.fsck_pass == pass).count();
    let shape = format!(
        "{} reads, {again} of them again: {} of inode blocks, {} of indirect ones, {} of directories' inodes, {} of directories, {} of maps; {} KB used",
        reads.len(),
        of(FsckPass::InodeScan),
        of(FsckPass::IndirectBlocks),
        of(FsckPass::DirectoryInodes),
        of(FsckPass::DirectoryContents),
        of(FsckPass::GroupMaps),
        layout.used_bytes() / 1024,
    );
    println!("{shape}");
    assert_eq!(of(FsckPass::InodeScan), 320, "{shape}");
    assert_eq!(of(FsckPass::GroupMaps), 10, "{shape}");
    assert!((1700..2300).contains(&reads.len()), "{shape}");
    let share = again as f64 / reads.len() as f64;
    assert!((0.4..0.6).contains(&share), "{shape}");
    let used = layout.used_bytes() / 1024;
    assert!((90_000..95_100).contains(&used), "{shape}");
}
