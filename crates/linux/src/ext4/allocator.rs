//! Allocation of blocks (mballoc): preallocations of files and of the processor, normalised
//! requests, goals, and the search of groups.

use super::bitmap::FreeRun;
use super::extents::FileExtent;
use super::geometry::{FLEX_GROUPS, Geometry};
use super::groups::Groups;
use super::preallocation::{Preallocation, trim_to_own, use_own};

/// Blocks of the largest file that takes its blocks from the processor's preallocation.
const SMALL_FILE_BLOCKS_MAX: u64 = 16;
/// Blocks of a preallocation of the processor.
const LOCALITY_BLOCKS: u64 = 512;
/// Smallest order of a request that is sought among chunks of its size.
const CHUNK_ORDER_MIN: u32 = 2;
/// Runs that a search looks at before it takes the best.
const SCANNED_RUNS_MAX: u64 = 200;
/// Runs after which a search takes one that is good enough.
const SCANNED_RUNS_MIN: u64 = 10;

/// Groups from which on groups are kept in lists by their free runs.
const LISTED_GROUPS_MIN: u64 = 16;
/// Groups that a search on a rotating device looks at before it goes by the lists.
const LINEAR_GROUPS: usize = 4;

/// Blocks that were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockRun {
    pub(super) physical: u64,
    pub(super) length: u64,
}

/// Request for data blocks of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataRequest {
    pub(super) logical: u64,
    pub(super) length: u64,
    pub(super) goal: u64,
    /// Extents of the file around the request.
    pub(super) left: Option<FileExtent>,
    pub(super) right: Option<FileExtent>,
    /// Size of the file in bytes.
    pub(super) file_bytes: u64,
    pub(super) is_open_for_writing: bool,
    /// Exactly the request is wanted (fallocate).
    pub(super) has_no_preallocation: bool,
}

/// Way in which a request is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    /// From the processor's preallocation.
    Locality,
    /// From a preallocation of the file.
    Stream,
    /// Exactly what a closed file needs.
    Closed,
}

/// Request after it was widened to a window.
#[derive(Clone, Copy, Debug)]
struct Search {
    /// First block of the file that the search covers.
    logical: u64,
    length: u64,
    goal: u64,
    must_try_goal: bool,
    is_data: bool,
    is_stream: bool,
}

/// Allocator of blocks with the free space of all groups.
#[derive(Clone, Debug)]
pub(super) struct BlockAllocator {
    pub(super) groups: Groups,
    geometry: Geometry,
    /// Preallocations of the processor that small files share.
    locality: Vec<BlockRun>,
    /// Group of the last stream allocation.
    stream_group: u64,
    is_rotational: bool,
}

impl BlockAllocator {
    pub(super) fn new(geometry: &Geometry, groups: Groups, is_rotational: bool) -> Self {
        Self {
            groups,
            geometry: geometry.clone(),
            locality: Vec::new(),
            stream_group: 0,
            is_rotational,
        }
    }

    /// Allocates at least one block of a file. `None`: the file system is full.
    pub(super) fn allocate_data(
        &mut self,
        request: &DataRequest,
        own: &mut Vec<Preallocation>,
    ) -> Option<BlockRun> {
        let policy = self.policy(request);
        if let Some(run) = use_own(request, own) {
            return Some(self.mark(run));
        }
        let is_locality = policy == Policy::Locality;
        if is_locality && let Some(run) = self.use_locality(request.length, request.goal) {
            return Some(self.mark(run));
        }
        let exact = Search {
            logical: request.logical,
            length: request.length,
            goal: request.goal,
            must_try_goal: false,
            is_data: true,
            is_stream: policy == Policy::Stream,
        };
        let search = match policy {
            _ if request.has_no_preallocation => exact,
            Policy::Locality => Search {
                length: LOCALITY_BLOCKS,
                ..exact
            },
            Policy::Closed => exact,
            Policy::Stream => self.normalise(request, own),
        };
        let found = self.search(&search)?;
        self.take(found);
        let is_longer = found.length > request.length;
        let run = match policy {
            Policy::Locality if is_longer => {
                self.locality.push(found);
                self.use_locality(request.length, request.goal)?
            }
            Policy::Stream if is_longer => {
                own.push(cover(request, &search, found));
                use_own(request, own)?
            }
            _ => found,
        };
        Some(self.mark(run))
    }

    /// Allocates one block for metadata near `goal`.
    pub(super) fn allocate_metadata(&mut self, goal: u64) -> Option<BlockRun> {
        let search = Search {
            logical: 0,
            length: 1,
            goal,
            must_try_goal: false,
            is_data: false,
            is_stream: false,
        };
        let found = self.search(&search)?;
        self.take(found);
        Some(self.mark(found))
    }

    fn policy(&self, request: &DataRequest) -> Policy {
        let block_bytes = self.geometry.block_bytes;
        let end = request.logical + request.length;
        let file_blocks = request.file_bytes.div_ceil(block_bytes);
        let is_small = end.max(file_blocks) <= SMALL_FILE_BLOCKS_MAX;
        let is_closed_tail = end == file_blocks && !request.is_open_for_writing;
        if is_small {
            Policy::Locality
        } else if is_closed_tail {
            Policy::Closed
        } else {
            Policy::Stream
        }
    }

    /// Takes blocks from the processor's preallocation that is nearest to the goal.
    fn use_locality(&mut self, length: u64, goal: u64) -> Option<BlockRun> {
        let fitting = self
            .locality
            .iter()
            .enumerate()
            .filter(|(_, run)| run.length >= length);
        let (index, _) = fitting.min_by_key(|(_, run)| run.physical.abs_diff(goal))?;
        let run = &mut self.locality[index];
        let used = BlockRun {
            physical: run.physical,
            length,
        };
        run.physical += length;
        run.length -= length;
        if run.length == 0 {
            self.locality.remove(index);
        }
        Some(used)
    }

    /// Widens a request to a window of the file, by the file's size.
    fn normalise(&self, request: &DataRequest, own: &[Preallocation]) -> Search {
        let block_bytes = self.geometry.block_bytes;
        let end = request.logical + request.length;
        let bytes = (end * block_bytes).max(request.file_bytes);
        // Small blocks have small windows, whatever the file's size.
        let chunk_bytes = 2 * block_bytes;
        let window = |bytes: u64| {
            let blocks = bytes / block_bytes;
            (request.logical / blocks * blocks, blocks)
        };
        let (mut start, mut size) = match bytes {
            0..=1_048_576 => (0, bytes.next_power_of_two().max(16 << 10) / block_bytes),
            _ if bytes <= 4 << 20 || chunk_bytes <= 2 << 10 => window(2 << 20),
            _ if bytes <= 8 << 20 || chunk_bytes <= 4 << 10 => window(4 << 20),
            _ if request.length <= (8 << 20) / block_bytes || chunk_bytes <= 8 << 10 => {
                window(8 << 20)
            }
            _ => (request.logical, request.length),
        };
        let per_group = self.geometry.blocks_per_group;
        start = start.max(request.logical / per_group * per_group);
        if let Some(left) = request.left.filter(|left| start < left.end()) {
            size -= left.end() - start;
            start = left.end();
        }
        if let Some(right) = request.right.filter(|right| start + size > right.logical) {
            size = right.logical - start;
        }
        size = size.min(per_group);
        let (start, end) = trim_to_own(request.logical, start, start + size, own);
        let mut search = Search {
            logical: start,
            length: end - start,
            goal: request.goal,
            must_try_goal: false,
            is_data: true,
            is_stream: true,
        };
        if let Some(right) = request.right.filter(|right| right.logical == end)
            && right.physical >= search.length + self.geometry.first_data_block
        {
            search.goal = right.physical - search.length;
            search.must_try_goal = true;
        }
        if let Some(left) = request.left.filter(|left| left.end() == start)
            && left.physical + left.length < self.geometry.blocks
        {
            search.goal = left.physical + left.length;
            search.must_try_goal = true;
        }
        search
    }

    /// Finds blocks: at the goal, then chunks of the size, then the best run of each group.
    fn search(&mut self, search: &Search) -> Option<BlockRun> {
        let goal_group = self.geometry.group_of_block(search.goal);
        if search.must_try_goal {
            let offset = search.goal - self.geometry.group_first(goal_group);
            let group = &mut self.groups.groups[goal_group as usize];
            group.is_loaded = true;
            let found = group.blocks.find_extent(offset, search.length);
            if found.is_some_and(|run| run.length >= search.length) {
                if search.is_stream {
                    self.stream_group = goal_group;
                }
                return Some(BlockRun {
                    physical: search.goal,
                    length: search.length,
                });
            }
        }
        let first = if search.is_stream {
            self.stream_group
        } else {
            goal_group
        };
        let fast = self.fast_groups(first);
        let found = self.chunk_in(&fast, search).or_else(|| {
            fast.iter()
                .find_map(|group| self.best_run(*group, search.length, true))
        });
        let (group, run) = match found {
            Some(found) => found,
            None => {
                let mut groups = self.groups_from(first);
                let found = groups.find_map(|group| self.best_run(group, search.length, false));
                drop(groups);
                self.load_flex(first);
                found?
            }
        };
        if !self.has_group_lists() {
            self.load_flex(first);
        }
        self.groups.groups[group as usize].is_loaded = true;
        if search.is_stream {
            self.stream_group = group;
        }
        let physical = self.geometry.group_first(group) + run.start;
        Some(BlockRun {
            physical,
            length: run.length.min(search.length),
        })
    }

    fn groups_from(&self, first: u64) -> impl Iterator<Item = u64> + use<> {
        let count = self.geometry.groups;
        (0..count).map(move |index| (first + index) % count)
    }

    /// Whether groups are found by lists of those that were looked at, in place of one by one.
    fn has_group_lists(&self) -> bool {
        self.geometry.groups >= LISTED_GROUPS_MIN
    }

    /// Groups that a search for long free runs looks at, in order. It loads no bitmap from the
    /// device but those of the first group of a flex group.
    fn fast_groups(&self, first: u64) -> Vec<u64> {
        let is_near = |group: &u64| {
            let state = &self.groups.groups[*group as usize];
            state.is_loaded || state.is_bitmap_computed || group.is_multiple_of(FLEX_GROUPS)
        };
        if !self.has_group_lists() {
            return self.groups_from(first).filter(is_near).collect();
        }
        let linear = if self.is_rotational { LINEAR_GROUPS } else { 0 };
        let mut groups: Vec<u64> = self
            .groups_from(first)
            .take(linear)
            .filter(is_near)
            .collect();
        let is_loaded = |group: &u64| self.groups.groups[*group as usize].is_loaded;
        groups.extend(self.groups_from(first).skip(linear).filter(is_loaded));
        groups
    }

    /// Loads the bitmaps of the rest of a flex group, as a search that goes by groups does.
    fn load_flex(&mut self, first: u64) {
        let end = (first / FLEX_GROUPS + 1) * FLEX_GROUPS;
        for group in first..end.min(self.geometry.groups) {
            self.groups.groups[group as usize].is_loaded = true;
        }
    }

    /// Chunk of the request's size, if that is a power of two. Data does not go to the first group
    /// of a flex group here.
    fn chunk_in(&self, groups: &[u64], search: &Search) -> Option<(u64, FreeRun)> {
        let order = search.length.ilog2();
        let is_tracked = order + 1 >= CHUNK_ORDER_MIN && order <= self.geometry.chunk_order_max();
        if !search.length.is_power_of_two() || !is_tracked {
            return None;
        }
        groups.iter().find_map(|group| {
            let is_reserved = search.is_data && group.is_multiple_of(FLEX_GROUPS);
            let bitmap = &self.groups.groups[*group as usize].blocks;
            let start = if is_reserved {
                None
            } else {
                bitmap.first_chunk(order)
            }?;
            Some((
                *group,
                FreeRun {
                    start,
                    length: search.length,
                },
            ))
        })
    }

    /// Best run of a group for `length` blocks; with `by_mean` only of a group whose mean free run
    /// is so long.
    fn best_run(&self, group: u64, length: u64, by_mean: bool) -> Option<(u64, FreeRun)> {
        let bitmap = &self.groups.groups[group as usize].blocks;
        let runs = bitmap.runs().count() as u64;
        if runs == 0 || by_mean && bitmap.free() / runs < length {
            return None;
        }
        let mut best: Option<FreeRun> = None;
        let mut scanned = 0;
        let mut from = 0;
        while let Some(run) = bitmap.next_run(from) {
            if by_mean && run.length < length {
                from = run.start + run.length;
                continue;
            }
            let extent = bitmap.find_extent(run.start, length)?;
            from = extent.start + extent.length;
            scanned += 1;
            if extent.length == length {
                return Some((group, extent));
            }
            let is_better = match best {
                None => true,
                Some(best) if best.length < length => extent.length > best.length,
                Some(best) => extent.length > length && extent.length < best.length,
            };
            if is_better {
                best = Some(extent);
            }
            let is_enough = best.is_some_and(|best| best.length >= length);
            if scanned > SCANNED_RUNS_MAX || is_enough && scanned > SCANNED_RUNS_MIN {
                break;
            }
        }
        best.map(|run| (group, run))
    }

    /// Takes blocks out of the free space of their group.
    fn take(&mut self, run: BlockRun) {
        let group = self.geometry.group_of_block(run.physical);
        let offset = run.physical - self.geometry.group_first(group);
        self.groups.groups[group as usize]
            .blocks
            .set_used(offset..offset + run.length);
    }

    /// Counts blocks as allocated on the device.
    fn mark(&mut self, run: BlockRun) -> BlockRun {
        let group = &mut self.groups.groups[self.geometry.group_of_block(run.physical) as usize];
        group.free_blocks -= run.length;
        group.is_bitmap_computed = false;
        self.groups.free_blocks.add(-(run.length as i64));
        run
    }

    /// Counts blocks as free on the device. They are given away again after `release`.
    pub(super) fn unmark(&mut self, run: BlockRun) {
        let group = &mut self.groups.groups[self.geometry.group_of_block(run.physical) as usize];
        group.free_blocks += run.length;
        self.groups.free_blocks.add(run.length as i64);
    }

    /// Lets blocks be given away again.
    pub(super) fn release(&mut self, run: BlockRun) {
        let group = self.geometry.group_of_block(run.physical);
        let offset = run.physical - self.geometry.group_first(group);
        let state = &mut self.groups.groups[group as usize];
        state.blocks.set_free(offset..offset + run.length);
        state.is_trimmed = false;
    }

    /// Gives back what a file has in reserve.
    pub(super) fn discard_preallocations(&mut self, own: &mut Vec<Preallocation>) {
        for run in own.drain(..).flat_map(|reserve| reserve.unused()) {
            self.release(run);
        }
    }
}

/// Reserve for the blocks that a search found: where it was shorter than its window, it is placed
/// so that it covers the request.
fn cover(request: &DataRequest, search: &Search, found: BlockRun) -> Preallocation {
    let mut logical = search.logical;
    if found.length < search.length {
        let at_end = search.logical + search.length - found.length;
        let end = request.logical + request.length;
        logical = if request.logical >= at_end {
            at_end
        } else if end <= search.logical + found.length {
            search.logical
        } else {
            request.logical
        };
    }
    Preallocation::new(logical, found)
}
