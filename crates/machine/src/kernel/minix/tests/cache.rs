//! The cache against a plain list of what was used last.

use super::super::cache::{BlockKey, Cache, ReuseExpectation};
use diskperf_sim::Streams;

fn key(block: u32) -> BlockKey {
    BlockKey {
        drive: Some(0),
        block,
    }
}

#[test]
fn the_least_recently_used_block_is_the_next_to_go() {
    let mut cache = Cache::new(8);
    // From the least to the most recently used.
    let mut reference: Vec<u32> = Vec::new();
    let mut choice = Streams::new(1989).stream("blocks");
    for _ in 0..10_000 {
        let block = choice.below(16) as u32;
        let found = cache.take_cached(key(block));
        assert_eq!(found.is_some(), reference.contains(&block));
        let id = found.unwrap_or_else(|| {
            if reference.len() == 8 {
                reference.remove(0);
            }
            cache.replace_unused(key(block))
        });
        cache.release(id, ReuseExpectation::Possible);
        reference.retain(|other| *other != block);
        reference.push(block);
    }
    for block in 0..16 {
        assert_eq!(cache.contains(key(block)), reference.contains(&block));
    }
}

#[test]
fn what_is_in_use_or_dirty_does_not_go() {
    let mut cache = Cache::new(2);
    let used = cache.replace_unused(key(1));
    let dirty = cache.replace_unused(key(2));
    cache.mark_dirty(dirty);
    cache.release(dirty, ReuseExpectation::Possible);
    assert_eq!(cache.dirty_victim(), Some(key(2)));
    assert_eq!(cache.dirty_blocks(0), [key(2)]);
    cache.mark_clean(key(2));
    assert_eq!(cache.dirty_victim(), None);
    let third = cache.replace_unused(key(3));
    assert!(cache.contains(key(1)) && !cache.contains(key(2)));
    assert_eq!(cache.unused_count(), 0);
    cache.release(used, ReuseExpectation::Possible);
    cache.release(third, ReuseExpectation::Unlikely);
    cache.replace_unused(key(4));
    assert!(!cache.contains(key(3)), "what is hardly wanted goes first");
}

#[test]
fn a_block_that_is_in_use_is_not_forgotten() {
    let mut cache = Cache::new(2);
    let id = cache.replace_unused(key(1));
    cache.discard(key(1));
    assert!(cache.contains(key(1)));
    cache.release(id, ReuseExpectation::Possible);
    cache.discard(key(1));
    assert!(!cache.contains(key(1)));
    assert_eq!(cache.unused_count(), 2);
}
