//! Claims of files and metadata on fragments, collected for the consistency check.

use super::super::FastFileSystem;
use super::super::indirect::IndirectBlockId;
use super::super::inode::{DIRECT_POINTERS, Inode, InodeKind, InodeNumber};
use super::super::superblock::{FragmentAddress, GroupIndex};
use super::ConsistencyProblem;

/// Bitmap of the fragments that metadata or a file claims.
pub(super) struct FragmentClaims {
    claimed_bits: Vec<u64>,
    used_fragments: u32,
    indirect_block_count: u32,
}

/// File whose block pointers are followed to collect its claims.
struct Claimant<'a> {
    inode: InodeNumber,
    record: &'a Inode,
    /// Number of blocks up to the end of the file.
    block_count: u64,
}

impl FragmentClaims {
    /// Collects the claims of all cylinder groups' metadata and of all inodes, and reports problems
    /// with the pointers.
    pub(super) fn collect_claims(
        file_system: &FastFileSystem,
        problems: &mut Vec<ConsistencyProblem>,
    ) -> Self {
        let size = file_system.superblock.size_fragments();
        let mut claims = Self {
            claimed_bits: vec![0; size.div_ceil(64) as usize],
            used_fragments: 0,
            indirect_block_count: 0,
        };
        claims.claim_metadata(file_system);
        for inode in (0..file_system.inodes.inode_count()).map(InodeNumber) {
            if let Some(record) = file_system.inodes.try_inode(inode) {
                let block_bytes = u64::from(file_system.superblock.block_bytes());
                let blocks = record.size_bytes.div_ceil(block_bytes);
                let claimant = Claimant {
                    inode,
                    record,
                    block_count: blocks,
                };
                claims.claim_file(file_system, &claimant, problems);
            }
        }
        let kept = file_system.indirect_blocks.block_count() as u32;
        if kept != claims.indirect_block_count {
            problems.push(ConsistencyProblem::LostIndirect {
                kept,
                reached: claims.indirect_block_count,
            });
        }
        claims
    }

    pub(super) fn is_claimed(&self, address: FragmentAddress) -> bool {
        self.claimed_bits[address.0 as usize / 64] >> (address.0 % 64) & 1 == 1
    }

    pub(super) fn used_fragments(&self) -> u32 {
        self.used_fragments
    }

    fn mark_claimed(&mut self, address: u32) {
        self.claimed_bits[address as usize / 64] |= 1 << (address % 64);
    }

    fn claim_metadata(&mut self, file_system: &FastFileSystem) {
        let superblock = &file_system.superblock;
        for group in (0..superblock.group_count()).map(GroupIndex) {
            let mut start = superblock.superblock_copy_address(group).0;
            let mut end = superblock.data_start(group).0;
            if group.0 == 0 {
                start = 0;
                end += superblock.summary_fragments();
            }
            for address in start..end.min(superblock.group_end(group).0) {
                self.mark_claimed(address);
            }
        }
    }

    fn claim_fragments(
        &mut self,
        file_system: &FastFileSystem,
        inode: InodeNumber,
        address: FragmentAddress,
        fragments: u32,
        problems: &mut Vec<ConsistencyProblem>,
    ) {
        let per_block = file_system.superblock.fragments_per_block();
        let size = file_system.superblock.size_fragments();
        let inside = address.0 < size && fragments <= size - address.0;
        if fragments == 0 || !inside || address.0 % per_block + fragments > per_block {
            problems.push(ConsistencyProblem::BadAddress {
                inode,
                address,
                fragments,
            });
            return;
        }
        for address in (address.0..address.0 + fragments).map(FragmentAddress) {
            if self.is_claimed(address) {
                problems.push(ConsistencyProblem::ClaimedTwice { inode, address });
            }
            self.mark_claimed(address.0);
        }
        self.used_fragments += fragments;
    }

    fn claim_file(
        &mut self,
        file_system: &FastFileSystem,
        claimant: &Claimant<'_>,
        problems: &mut Vec<ConsistencyProblem>,
    ) {
        let &Claimant {
            inode,
            record,
            block_count: blocks,
        } = claimant;
        for (lbn, &pointer) in (0..DIRECT_POINTERS).zip(&record.direct) {
            if pointer == 0 {
                if record.inode_kind == InodeKind::Directory && u64::from(lbn) < blocks {
                    problems.push(ConsistencyProblem::DirectoryDamage {
                        directory: inode,
                        what: "a directory has a hole",
                    });
                }
                continue;
            }
            if u64::from(lbn) >= blocks {
                problems.push(ConsistencyProblem::BlockBeyondEnd { inode, lbn });
            }
            let fragments = match file_system.fragments_at_size(record.size_bytes, lbn) {
                // Behind the end: reported already, and claimed as one.
                0 => 1,
                fragments => fragments,
            };
            self.claim_fragments(
                file_system,
                inode,
                FragmentAddress(pointer),
                fragments,
                problems,
            );
        }
        let pointers = file_system.superblock.pointers_per_block();
        let first_lbns = [DIRECT_POINTERS, DIRECT_POINTERS + pointers];
        for (level, first_lbn) in (0..).zip(first_lbns) {
            if let Some(root) = record.indirect[level] {
                self.claim_indirect(file_system, claimant, root, (level, first_lbn), problems);
            }
        }
    }

    /// Adds the claims of an indirect block and of all blocks below it. `place` is the level (1 for
    /// a double indirect block) and the first block of the file below it.
    fn claim_indirect(
        &mut self,
        file_system: &FastFileSystem,
        claimant: &Claimant<'_>,
        id: IndirectBlockId,
        place: (usize, u32),
        problems: &mut Vec<ConsistencyProblem>,
    ) {
        let &Claimant {
            inode,
            block_count: blocks,
            ..
        } = claimant;
        let (level, first_lbn) = place;
        let block = file_system.indirect_blocks.indirect_block(id);
        let per_block = file_system.superblock.fragments_per_block();
        self.indirect_block_count += 1;
        self.claim_fragments(file_system, inode, block.address, per_block, problems);
        if (level == 1) == block.children.is_empty() {
            problems.push(ConsistencyProblem::IndirectDamage { inode });
            return;
        }
        for (index, &pointer) in (0..).zip(&block.pointers) {
            if level == 1 {
                let child = block.children[index as usize];
                let address = child.map_or(0, |id| {
                    file_system.indirect_blocks.indirect_block(id).address.0
                });
                if address != pointer {
                    problems.push(ConsistencyProblem::IndirectDamage { inode });
                }
                if let Some(child) = child {
                    let first_lbn = first_lbn + index * block.pointers.len() as u32;
                    self.claim_indirect(file_system, claimant, child, (0, first_lbn), problems);
                }
            } else if pointer != 0 {
                let lbn = first_lbn + index;
                if u64::from(lbn) >= blocks {
                    problems.push(ConsistencyProblem::BlockBeyondEnd { inode, lbn });
                }
                self.claim_fragments(
                    file_system,
                    inode,
                    FragmentAddress(pointer),
                    per_block,
                    problems,
                );
            }
        }
    }
}
