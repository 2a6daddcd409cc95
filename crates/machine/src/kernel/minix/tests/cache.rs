//! The cache against a plain list of what was used last.

use super::super::cache::{BlockCache, DriveBlockKey, ReuseExpectation};
use diskperf_sim::RandomStreams;

fn key(block: u32) -> DriveBlockKey {
    DriveBlockKey {
        drive: Some(0),
        block,
    }
}

#[test]
fn the_least_recently_used_block_is_the_next_to_go() {
    let mut cache = BlockCache::new(8);
    // From the least to the most recently used.
    let mut reference: Vec<u32> = Vec::new();
    let mut choice = RandomStreams::new(1989).named_stream("blocks");
    for _ in 0..10_000 {
        let block = choice.draw_below(16) as u32;
        let found = cache.take_cached(key(block));
        assert_eq!(found.is_some(), reference.contains(&block));
        let id = found.unwrap_or_else(|| {
            if reference.len() == 8 {
                reference.remove(0);
            }
            cache.replace_unused(key(block))
        });
        cache.release_buffer(id, ReuseExpectation::ReusePossible);
        reference.retain(|other| *other != block);
        reference.push(block);
    }
    for block in 0..16 {
        assert_eq!(cache.is_cached(key(block)), reference.contains(&block));
    }
}

#[test]
fn what_is_in_use_or_dirty_does_not_go() {
    let mut cache = BlockCache::new(2);
    let used = cache.replace_unused(key(1));
    let dirty = cache.replace_unused(key(2));
    cache.mark_dirty(dirty);
    cache.release_buffer(dirty, ReuseExpectation::ReusePossible);
    assert_eq!(cache.dirty_victim(), Some(key(2)));
    assert_eq!(cache.dirty_blocks(0), [key(2)]);
    cache.mark_clean(key(2));
    assert_eq!(cache.dirty_victim(), None);
    let third = cache.replace_unused(key(3));
    assert!(cache.is_cached(key(1)) && !cache.is_cached(key(2)));
    assert_eq!(cache.unused_buffer_count(), 0);
    cache.release_buffer(used, ReuseExpectation::ReusePossible);
    cache.release_buffer(third, ReuseExpectation::ReuseUnlikely);
    cache.replace_unused(key(4));
    assert!(!cache.is_cached(key(3)), "what is hardly wanted goes first");
}

#[test]
fn a_block_that_is_in_use_is_not_forgotten() {
    let mut cache = BlockCache::new(2);
    let id = cache.replace_unused(key(1));
    cache.discard_block(key(1));
    assert!(cache.is_cached(key(1)));
    cache.release_buffer(id, ReuseExpectation::ReusePossible);
    cache.discard_block(key(1));
    assert!(!cache.is_cached(key(1)));
    assert_eq!(cache.unused_buffer_count(), 2);
}
