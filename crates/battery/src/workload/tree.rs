//! Tree of files for the workloads of Zachariassen 1987: the directories and files of a UNIX `/usr`
//! of the 1980s, drawn from a seed.
//!
//! # Sizes
//!
//! File sizes are log-normal: the long tail that every study of the time found (Satyanarayanan
//! 1981, "A study of file sizes and functional lifetimes"; Mullender and Tanenbaum 1984, "Immediate
//! files"). Two numbers fix the distribution. The median is assumed, 2.8 KB, above the one or two
//! KB of users' files that the second study reports, since `/usr` holds programs and libraries. The
//! spread then follows from the mean of 12 to 20 KB that the restore times of Zachariassen 1987
//! lead to. About 75 % of the files are below 10 KB: Ousterhout et al. 1985 find 80 % of all
//! accesses there.
//!
//! No real file system is read: the tree is a likely one, not a certain one. Other seeds give other
//! trees of the same kind.

use crate::program::ProgramError;
use crate::random::RandomDraws;
use diskperf_system::{FilesystemLayout, ImageGeometry, TreeNode};
use std::collections::BTreeSet;

/// Name of the directory in which a tree is made.
pub(crate) const TOP_NAME: &str = "usr";

/// Name of the files of the programs that work on a tree.
pub(crate) const TREE_NAME: &str = "tree";

/// Default bytes of the files of a tree. With them, the file system of Zachariassen 1987 is as full
/// as printed: 90,838 KB including directories and partly filled blocks.
pub(crate) const DEFAULT_TREE_BYTES: u64 = 90_000_000;

/// Maximum bytes of a tree. Such a tree has a quarter of a million files.
pub(crate) const TREE_BYTES_MAX: u64 = 4 << 30;

/// Median file size of a tree, in bytes.
const FILE_BYTES_MEDIAN: f64 = 2800.0;
/// Standard deviation of the natural logarithm of the file size.
const FILE_BYTES_LOG_DEVIATION: f64 = 1.96;
/// Maximum file size of a tree, in bytes. Larger draws are repeated. A kernel or an emacs was well
/// below this size.
const FILE_BYTES_MAX: f64 = 2_097_152.0;
const FILE_SHARE_MAX: f64 = 0.125;
/// Mean number of files per directory, from Zachariassen 1987: 91 MB in about 500 directories.
const FILES_PER_DIRECTORY: f64 = 10.6;
const DIRECTORY_DEPTH_MAX: usize = 7;
const TREE_STREAM: u128 = 3;

/// Geometry of an image that stands for the drive of Zachariassen 1987, a Fujitsu 2344 ("620
/// cylinders 27 heads 67 sectors/track").
const IMAGE_SHAPE: ImageGeometry = ImageGeometry {
    sectors_per_track: 67,
    tracks_per_cylinder: 27,
    revolutions_per_second: 60,
};

/// Description of a tree: the total bytes of its files, and the seed from which it is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeDescription {
    pub(crate) content_bytes: u64,
    pub(crate) seed: u64,
}

/// Tree of files in the order of its creation: each directory, then its files, then its
/// subdirectories with all their contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    pub(crate) description: TreeDescription,
    /// Directories of the tree. The first is the top directory.
    pub(crate) directories: Vec<TreeDirectory>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TreeDirectory {
    /// Path of the directory relative to the top. It is empty for the top directory.
    pub(crate) path: String,
    /// Index of the parent directory in the tree. The top directory is its own parent.
    parent_index: usize,
    pub(crate) directory_files: Vec<TreeFile>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TreeFile {
    pub(crate) file_number: u64,
    pub(crate) file_name: String,
    pub(crate) size_bytes: u64,
}

impl Tree {
    /// Creates the tree of this description. The same description always gives the same tree.
    pub(crate) fn new(kind: TreeDescription) -> Self {
        let mut draws = RandomDraws::new(kind.seed, TREE_STREAM);
        let sizes = draw_file_sizes(&mut draws, kind.content_bytes);
        let count = (sizes.len() as f64 / FILES_PER_DIRECTORY + 0.5) as usize;
        let parents = draw_parents(&mut draws, count.max(1));
        // Some directories have many files, most have few.
        let weights: Vec<f64> = parents.iter().map(|_| draws.draw_exponential()).collect();
        let mut in_directory = vec![Vec::new(); parents.len()];
        for size_bytes in sizes {
            in_directory[draws.draw_weighted(&weights)].push(size_bytes);
        }
        let mut tree = Self {
            description: kind,
            directories: Vec::new(),
        };
        let mut children = vec![Vec::new(); parents.len()];
        for (directory, parent) in parents.iter().enumerate().skip(1) {
            children[*parent].push(directory);
        }
        tree.name_entries(&mut draws, &children, &in_directory);
        tree
    }

    /// Names the directories and files, depth first.
    fn name_entries(
        &mut self,
        draws: &mut RandomDraws,
        children: &[Vec<usize>],
        sizes: &[Vec<u64>],
    ) {
        let mut number = 0;
        let mut stack = vec![(0, 0, String::new())];
        while let Some((drawn, parent, path)) = stack.pop() {
            let mut taken = BTreeSet::new();
            let mut files = Vec::new();
            for size_bytes in &sizes[drawn] {
                let name = draws.draw_name(&mut taken, &FILE_ENDINGS);
                files.push(TreeFile {
                    file_number: number,
                    file_name: name,
                    size_bytes: *size_bytes,
                });
                number += 1;
            }
            let place = self.directories.len();
            let prefix = if path.is_empty() {
                String::new()
            } else {
                format!("{path}/")
            };
            for child in children[drawn].iter().rev() {
                let name = draws.draw_name(&mut taken, &DIRECTORY_ENDINGS);
                stack.push((*child, place, format!("{prefix}{name}")));
            }
            self.directories.push(TreeDirectory {
                path,
                parent_index: parent,
                directory_files: files,
            });
        }
    }

    /// Iterates over all files, each with its path relative to the top of the tree.
    pub(crate) fn iter_files(&self) -> impl Iterator<Item = (String, &TreeFile)> {
        self.directories.iter().flat_map(|directory| {
            let prefix = if directory.path.is_empty() {
                String::new()
            } else {
                format!("{}/", directory.path)
            };
            directory
                .directory_files
                .iter()
                .map(move |file| (format!("{prefix}{}", file.file_name), file))
        })
    }

    /// Returns the layout of the tree on a fresh file system of this size, in its directory
    /// [`TOP_NAME`].
    pub(crate) fn layout_on_image(
        &self,
        image_bytes: u64,
    ) -> Result<FilesystemLayout, ProgramError> {
        let nodes = self.directories.iter().enumerate();
        let nodes = nodes.flat_map(|(number, directory)| {
            // The top of the file system comes before the tree's directories.
            let made = match directory.path.rsplit('/').next() {
                Some(name) if number > 0 => TreeNode::Directory {
                    parent: directory.parent_index + 1,
                    name,
                },
                _ => TreeNode::Directory {
                    parent: 0,
                    name: TOP_NAME,
                },
            };
            let files = directory
                .directory_files
                .iter()
                .map(move |file| TreeNode::RegularFile {
                    parent: number + 1,
                    name: &file.file_name,
                    size_bytes: file.size_bytes,
                });
            [made].into_iter().chain(files)
        });
        Ok(FilesystemLayout::from_tree(
            (image_bytes, IMAGE_SHAPE),
            nodes,
        )?)
    }
}

/// Returns the maximum bytes that a tree takes on a file system with fragments of 1 KB. This
/// includes half a fragment for each file, the directories, and a reserve for random variation.
pub(crate) fn footprint_bytes_max(content_bytes: u64) -> u64 {
    content_bytes + content_bytes / 12 + (1 << 20)
}

/// Draws file sizes that add up to `content_bytes`.
fn draw_file_sizes(draws: &mut RandomDraws, content_bytes: u64) -> Vec<u64> {
    let largest = FILE_BYTES_MAX.min(content_bytes as f64 * FILE_SHARE_MAX);
    let mut left = content_bytes;
    let mut sizes = Vec::new();
    while left > 0 {
        let drawn = loop {
            let drawn =
                FILE_BYTES_MEDIAN * libm::exp(FILE_BYTES_LOG_DEVIATION * draws.draw_normal());
            if drawn <= largest || largest < 1.0 {
                break drawn;
            }
        };
        let size_bytes = (drawn as u64).clamp(1, left);
        sizes.push(size_bytes);
        left -= size_bytes;
    }
    sizes
}

/// Draws the parent of each directory from the directories before it that are not too deep.
fn draw_parents(draws: &mut RandomDraws, count: usize) -> Vec<usize> {
    let mut depths = vec![0];
    let mut parents = vec![0];
    while parents.len() < count {
        let parent = draws.draw_below(parents.len() as u64) as usize;
        if depths[parent] < DIRECTORY_DEPTH_MAX {
            depths.push(depths[parent] + 1);
            parents.push(parent);
        }
    }
    parents
}

/// Endings of file names, all equally likely.
const FILE_ENDINGS: [&str; 8] = ["", "", "", ".c", ".h", ".o", ".1", ".a"];
const DIRECTORY_ENDINGS: [&str; 1] = [""];

#[cfg(test)]
mod tests;
