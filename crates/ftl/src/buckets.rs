//! Closed superblocks in lists by valid count, for the choice of a victim.

use crate::specification::VictimPolicy;

const NO_SUPERBLOCK: u32 = u32::MAX;

/// Number of closed superblocks. Keeps lists by valid count where these are faster than a scan for
/// each victim.
#[derive(Debug, Clone)]
pub(crate) struct ClosedSuperblocks {
    closed_count: u32,
    /// Number of closed superblocks without valid mapping units.
    empty_count: u32,
    lists_by_valid_count: Option<ValidCountLists>,
}

#[derive(Debug, Clone)]
struct ValidCountLists {
    list_heads: Vec<u32>,
    next_in_list: Vec<u32>,
    previous_in_list: Vec<u32>,
    /// Index below which all lists are empty.
    lowest_nonempty: usize,
}

impl ClosedSuperblocks {
    pub(crate) fn new(policy: VictimPolicy, superblocks: u32, units: u32) -> Self {
        // A victim is chosen once for as many writes as it has invalid units.
        let by_lists = policy == VictimPolicy::Greedy && superblocks > units;
        Self {
            closed_count: 0,
            empty_count: 0,
            lists_by_valid_count: by_lists.then(|| ValidCountLists::new(superblocks, units)),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.closed_count == 0
    }

    pub(crate) fn has_lists(&self) -> bool {
        self.lists_by_valid_count.is_some()
    }

    /// Tests whether a closed superblock has no valid mapping units, so that an erase alone would
    /// free it.
    pub(crate) fn has_empty(&self) -> bool {
        self.empty_count > 0
    }

    pub(crate) fn insert(&mut self, superblock: u32, valid: u32) {
        self.closed_count += 1;
        self.empty_count += u32::from(valid == 0);
        if let Some(lists) = &mut self.lists_by_valid_count {
            lists.insert(superblock, valid);
        }
    }

    pub(crate) fn remove(&mut self, superblock: u32, valid: u32) {
        self.closed_count -= 1;
        self.empty_count -= u32::from(valid == 0);
        if let Some(lists) = &mut self.lists_by_valid_count {
            lists.remove(superblock, valid);
        }
    }

    /// Notes that a closed superblock has lost one valid mapping unit; `valid` is the new count.
    pub(crate) fn lower_valid_count(&mut self, superblock: u32, valid: u32) {
        self.empty_count += u32::from(valid == 0);
        if let Some(lists) = &mut self.lists_by_valid_count {
            lists.remove(superblock, valid + 1);
            lists.insert(superblock, valid);
        }
    }

    /// Returns a superblock with the smallest valid count; `None` without lists or closed
    /// superblocks.
    pub(crate) fn fewest_valid(&mut self) -> Option<u32> {
        self.lists_by_valid_count.as_mut()?.fewest_valid()
    }
}

impl ValidCountLists {
    fn new(superblocks: u32, units: u32) -> Self {
        let links = vec![NO_SUPERBLOCK; superblocks as usize];
        let heads = vec![NO_SUPERBLOCK; units as usize + 1];
        Self {
            lowest_nonempty: heads.len(),
            list_heads: heads,
            next_in_list: links.clone(),
            previous_in_list: links,
        }
    }

    fn insert(&mut self, superblock: u32, valid: u32) {
        let head = self.list_heads[valid as usize];
        self.next_in_list[superblock as usize] = head;
        self.previous_in_list[superblock as usize] = NO_SUPERBLOCK;
        if head != NO_SUPERBLOCK {
            self.previous_in_list[head as usize] = superblock;
        }
        self.list_heads[valid as usize] = superblock;
        self.lowest_nonempty = self.lowest_nonempty.min(valid as usize);
    }

    fn remove(&mut self, superblock: u32, valid: u32) {
        let (next, previous) = (
            self.next_in_list[superblock as usize],
            self.previous_in_list[superblock as usize],
        );
        if next != NO_SUPERBLOCK {
            self.previous_in_list[next as usize] = previous;
        }
        if previous == NO_SUPERBLOCK {
            self.list_heads[valid as usize] = next;
        } else {
            self.next_in_list[previous as usize] = next;
        }
    }

    fn fewest_valid(&mut self) -> Option<u32> {
        while *self.list_heads.get(self.lowest_nonempty)? == NO_SUPERBLOCK {
            self.lowest_nonempty += 1;
        }
        Some(self.list_heads[self.lowest_nonempty])
    }
}
