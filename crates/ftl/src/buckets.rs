//! Closed superblocks in lists by valid count, for the choice of a victim.

use crate::specification::Policy;

const NONE: u32 = u32::MAX;

/// Number of closed superblocks. Keeps lists by valid count where these are faster than a scan for
/// each victim.
#[derive(Debug, Clone)]
pub(crate) struct Buckets {
    closed: u32,
    /// Number of closed superblocks without valid mapping units.
    empty: u32,
    lists: Option<Lists>,
}

#[derive(Debug, Clone)]
struct Lists {
    heads: Vec<u32>,
    next: Vec<u32>,
    previous: Vec<u32>,
    /// Index below which all lists are empty.
    lowest: usize,
}

impl Buckets {
    pub(crate) fn new(policy: Policy, superblocks: u32, units: u32) -> Self {
        // A victim is chosen once for as many writes as it has invalid units.
        let by_lists = policy == Policy::Greedy && superblocks > units;
        Self {
            closed: 0,
            empty: 0,
            lists: by_lists.then(|| Lists::new(superblocks, units)),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.closed == 0
    }

    pub(crate) fn has_lists(&self) -> bool {
        self.lists.is_some()
    }

    /// Tests whether a closed superblock has no valid mapping units, so that an erase alone would
    /// free it.
    pub(crate) fn has_empty(&self) -> bool {
        self.empty > 0
    }

    pub(crate) fn insert(&mut self, superblock: u32, valid: u32) {
        self.closed += 1;
        self.empty += u32::from(valid == 0);
        if let Some(lists) = &mut self.lists {
            lists.insert(superblock, valid);
        }
    }

    pub(crate) fn remove(&mut self, superblock: u32, valid: u32) {
        self.closed -= 1;
        self.empty -= u32::from(valid == 0);
        if let Some(lists) = &mut self.lists {
            lists.remove(superblock, valid);
        }
    }

    /// Notes that a closed superblock has lost one valid mapping unit; `valid` is the new count.
    pub(crate) fn lower(&mut self, superblock: u32, valid: u32) {
        self.empty += u32::from(valid == 0);
        if let Some(lists) = &mut self.lists {
            lists.remove(superblock, valid + 1);
            lists.insert(superblock, valid);
        }
    }

    /// Returns a superblock with the smallest valid count; `None` without lists or closed
    /// superblocks.
    pub(crate) fn fewest(&mut self) -> Option<u32> {
        self.lists.as_mut()?.fewest()
    }
}

impl Lists {
    fn new(superblocks: u32, units: u32) -> Self {
        let links = vec![NONE; superblocks as usize];
        let heads = vec![NONE; units as usize + 1];
        Self {
            lowest: heads.len(),
            heads,
            next: links.clone(),
            previous: links,
        }
    }

    fn insert(&mut self, superblock: u32, valid: u32) {
        let head = self.heads[valid as usize];
        self.next[superblock as usize] = head;
        self.previous[superblock as usize] = NONE;
        if head != NONE {
            self.previous[head as usize] = superblock;
        }
        self.heads[valid as usize] = superblock;
        self.lowest = self.lowest.min(valid as usize);
    }

    fn remove(&mut self, superblock: u32, valid: u32) {
        let (next, previous) = (
            self.next[superblock as usize],
            self.previous[superblock as usize],
        );
        if next != NONE {
            self.previous[next as usize] = previous;
        }
        if previous == NONE {
            self.heads[valid as usize] = next;
        } else {
            self.next[previous as usize] = next;
        }
    }

    fn fewest(&mut self) -> Option<u32> {
        while *self.heads.get(self.lowest)? == NONE {
            self.lowest += 1;
        }
        Some(self.heads[self.lowest])
    }
}
