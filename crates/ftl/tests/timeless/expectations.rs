//! The expectations of the facts about flash drives that a layer without time can meet, by
//! their numbers, and the tests that check them. The others need a drive's time.

use crate::{features, laws, oracles, pasts, power_cut, skew_and_trim};

type Checks = &'static [fn()];

/// Number, what is expected, and what checks it.
#[rustfmt::skip]
const TIMELESS: [(u32, &str, Checks); 26] = [
    (16, "a unit that is moved is read at its old place until the map is switched",
        &[laws::a_unit_is_read_at_its_old_place_until_the_map_is_switched]),
    (17, "a copy of what was overwritten meanwhile is dead on arrival",
        &[laws::a_copy_of_what_was_overwritten_is_dead]),
    (18, "counts, bitmaps and both maps agree after every event",
        &[laws::laws_hold_after_every_request_of_every_policy]),
    (19, "pages in order, once; an erase at 0 valid",
        &[laws::units_go_die_by_die_and_row_by_row]),
    (20, "sequential overwrite: 1.000, no copies",
        &[skew_and_trim::writes_in_order_are_never_copied]),
    (21, "uniform at 0.10: FIFO 5.18, greedy of 64 4.85, one choice 10.0",
        &[oracles::the_reserve_is_no_spare]),
    (22, "small blocks within 1 % at 10^5 blocks",
        &[oracles::small_blocks_amplify_as_the_exact_cases]),
    (23, "blocks with k valid units are c / k of all",
        &[laws::valid_counts_are_spread_as_one_over_k]),
    (24, "hot and cold within 2 %, and in their order",
        &[skew_and_trim::hot_and_cold_writes_amplify_as_the_table_says]),
    (25, "trimmed whole: 1; trimmed by half: 1.18",
        &[skew_and_trim::after_all_is_trimmed_a_fill_costs_nothing,
            skew_and_trim::what_is_trimmed_is_spare]),
    (26, "amplification does not hang on dies",
        &[oracles::amplification_does_not_hang_on_dies]),
    (28, "what is not mapped has no place", &[features::what_is_not_mapped_has_no_place]),
    (31, "a third of the units each is of a page type, and stays so",
        &[features::a_unit_keeps_its_place_until_it_moves]),
    (32, "a sequential read loads all dies equally",
        &[features::a_sequential_read_loads_all_dies]),
    (36, "an idle drive takes a full burst again",
        &[features::a_folded_cache_takes_a_whole_burst_again]),
    (37, "a cache of its own superblocks and a third of the free units",
        &[features::the_cache_shrinks_as_the_drive_fills]),
    (42, "a power cut keeps what must be kept",
        &[power_cut::a_power_cut_at_every_event_keeps_what_must_be_kept]),
    (43, "a scan of open superblocks finds the map",
        &[power_cut::a_scan_looks_at_what_open_superblocks_have]),
    (44, "a map cache misses by what it does not cover",
        &[features::a_map_cache_hits_by_what_it_covers]),
    (45, "paced copies are few for each write",
        &[laws::paced_copies_keep_superblocks_free]),
    (46, "free superblocks never reach 0",
        &[laws::laws_hold_after_every_request_of_every_policy]),
    (47, "erases stay within the threshold + 1",
        &[laws::static_wear_levelling_moves_what_is_never_written]),
    (48, "erases x units = programmed, and amplification is their sum by cause",
        &[features::erases_account_for_what_was_programmed]),
    (52, "two placement IDs are as classes known in advance",
        &[skew_and_trim::hot_and_cold_writes_amplify_as_the_table_says]),
    (53, "one of 16 in parity: a fifteenth more programs, a sixteenth less room",
        &[features::parity_takes_one_program_of_each_stripe]),
    (54, "a made past is steady in its first writes",
        &[pasts::a_random_past_is_steady_from_its_first_writes]),
];

/// The table names each expectation once, in order, with a test that the compiler has seen.
#[test]
fn each_expectation_has_its_tests() {
    assert!(TIMELESS.is_sorted_by(|a, b| a.0 < b.0));
    for (number, what, checks) in TIMELESS {
        assert!(
            !what.is_empty() && !checks.is_empty(),
            "expectation {number}"
        );
    }
}
