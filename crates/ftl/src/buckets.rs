//! Closed superblocks in lists by their count of valid units.

const NONE: u32 = u32::MAX;

#[derive(Debug, Clone)]
pub(crate) struct Buckets {
    heads: Vec<u32>,
    next: Vec<u32>,
    previous: Vec<u32>,
    /// No list below this one has a superblock.
    lowest: usize,
}

impl Buckets {
    pub(crate) fn new(superblocks: u32, units: u32) -> Self {
        let links = vec![NONE; superblocks as usize];
        let heads = vec![NONE; units as usize + 1];
        Self {
            lowest: heads.len(),
            heads,
            next: links.clone(),
            previous: links,
        }
    }

    pub(crate) fn insert(&mut self, superblock: u32, valid: u32) {
        let head = self.heads[valid as usize];
        self.next[superblock as usize] = head;
        self.previous[superblock as usize] = NONE;
        if head != NONE {
            self.previous[head as usize] = superblock;
        }
        self.heads[valid as usize] = superblock;
        self.lowest = self.lowest.min(valid as usize);
    }

    pub(crate) fn remove(&mut self, superblock: u32, valid: u32) {
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

    /// A superblock with the fewest valid units.
    pub(crate) fn fewest(&mut self) -> Option<u32> {
        while *self.heads.get(self.lowest)? == NONE {
            self.lowest += 1;
        }
        Some(self.heads[self.lowest])
    }
}
