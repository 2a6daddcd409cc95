//! The cases: what each needs, and the table of them.

pub(crate) mod changing_attributes;
pub(crate) mod changing_names;
pub(crate) mod computing;
mod differences;
pub(crate) mod measuring;
pub(crate) mod opening;
pub(crate) mod piping;
pub(crate) mod reading;
pub(crate) mod ringing;
pub(crate) use ringing as ringing_on_a_small_volume;
pub(crate) mod running_out_of_space;
pub(crate) mod seeking;
mod steps;
pub(crate) mod together;
pub(crate) mod truncating;
pub(crate) mod writing;

pub(crate) use differences::{Abilities, MINIX, POSIX, XENIX};

use diskperf_system::{EngineChoice, System};
use std::ops::{Deref, DerefMut};
use std::pin::Pin;

/// One thing that a program may rely on.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// What is behind `/mnt0`, empty.
    pub(crate) volume: Volume,
    /// How many workers run the body at once. Pipes join them in a ring: see
    /// [`READ_END`] and [`WRITE_END`].
    pub(crate) workers: usize,
    pub(crate) body: Body,
}

/// A worker's system, and what it can do where systems differ.
pub(crate) struct World {
    pub(crate) system: System,
    pub(crate) can: Abilities,
    /// How a ring hands requests to the kernel.
    pub(crate) engine: EngineChoice,
}

impl Deref for World {
    type Target = System;
    fn deref(&self) -> &System {
        &self.system
    }
}

impl DerefMut for World {
    fn deref_mut(&mut self) -> &mut System {
        &mut self.system
    }
}

/// A body, given its worker's world and number.
pub(crate) type Body = for<'a> fn(&'a mut World, usize) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

/// What a volume must be.
#[derive(Clone, Copy)]
pub(crate) enum Volume {
    /// With room for what a case writes: less than 32 MiB, and holes.
    Ordinary,
    /// Full after at most [`SMALL_VOLUME_BYTES`].
    Small,
}

/// The most that a small volume holds.
pub(crate) const SMALL_VOLUME_BYTES: u64 = 8 << 20;

/// How many workers run a case of `together`.
pub(crate) const TOGETHER: usize = 3;

/// The number of the pipe end from which a worker reads what the worker before
/// it wrote; the one before the first is the last.
pub(crate) const READ_END: usize = 0;

/// The number of the pipe end that leads to the worker after it.
pub(crate) const WRITE_END: usize = 1;

/// Makes the [`Case`] of a row of the table.
macro_rules! case {
    (alone $module:ident::$name:ident on $volume:ident) => {
        $crate::cases::Case {
            name: concat!(stringify!($module), "::", stringify!($name)),
            volume: $crate::cases::Volume::$volume,
            workers: 1,
            body: |system, _| Box::pin($crate::cases::$module::$name(system)),
        }
    };
    (together $module:ident::$name:ident on $volume:ident) => {
        $crate::cases::Case {
            name: concat!(stringify!($module), "::", stringify!($name)),
            volume: $crate::cases::Volume::$volume,
            workers: $crate::cases::TOGETHER,
            body: |system, worker| Box::pin($crate::cases::$module::$name(system, worker)),
        }
    };
}

/// The table. Hands it to a macro of the runner, which makes a [`Case`] of
/// each row by `case!`.
macro_rules! for_each_case {
    ($runner:ident) => {
        $runner! {
            alone opening on Ordinary {
                a_missing_file_is_not_found,
                creating_makes_an_empty_file,
                creating_an_existing_file_empties_it,
                opening_without_truncate_keeps_the_data,
                an_exclusive_create_refuses_what_exists,
                a_directory_is_not_opened_for_writing,
                a_directory_is_not_read,
                a_path_through_a_file_is_refused,
                a_name_may_be_so_long_and_no_longer,
                only_the_worker_s_own_names_exist,
                the_null_and_zero_devices_are_there,
                each_open_has_an_offset_of_its_own,
                a_file_open_for_one_thing_refuses_the_other,
                a_closed_file_refuses_everything,
                the_lowest_free_descriptor_is_given_out,
                a_failure_names_the_call_and_the_file,
            }
            alone reading on Ordinary {
                an_empty_file_is_at_its_end,
                a_read_goes_on_where_the_last_one_ended,
                the_last_read_is_short,
                beyond_the_end_there_is_nothing,
                a_read_of_nothing_changes_nothing,
                a_hole_reads_as_zeroes,
                any_offset_and_length_will_do,
            }
            alone writing on Ordinary {
                what_was_written_is_read_back,
                an_overwrite_changes_only_its_own_bytes,
                a_write_of_nothing_changes_nothing,
                a_write_beyond_the_end_leaves_a_hole,
                a_write_at_the_end_appends,
                any_offset_and_length_will_do,
                two_descriptors_see_each_other_s_writes,
                a_very_large_offset_will_do,
                the_largest_file_cannot_grow,
                synced_data_is_still_there,
                a_hole_may_lie_beside_any_border_of_pointers,
                a_file_of_17_mib_is_read_back,
                holes_lie_between_indirect_blocks,
            }
            alone seeking on Ordinary {
                each_whence_counts_from_its_own_place,
                before_the_start_is_invalid,
                beyond_the_end_changes_no_length,
                beyond_the_largest_offset_is_invalid,
            }
            alone truncating on Ordinary {
                a_shortened_file_ends_there,
                a_lengthened_file_ends_in_zeroes,
                what_was_cut_off_does_not_come_back,
                the_offset_stays,
                a_write_after_it_leaves_a_hole,
                an_impossible_length_is_refused,
            }
            alone changing_names on Ordinary {
                a_name_has_the_length_of_its_file,
                stat_refuses_what_it_must,
                a_directory_is_synced,
                an_unlinked_file_is_gone,
                an_unlinked_file_that_is_open_keeps_its_data,
                unlink_refuses_what_is_no_file,
                directories_come_and_go,
                mkdir_refuses_what_it_must,
                rmdir_refuses_what_it_must,
                a_renamed_file_has_its_data,
                a_rename_replaces_a_file,
                a_renamed_directory_has_its_files,
                a_rename_onto_itself_changes_nothing,
                rename_refuses_what_it_must,
                a_directory_holds_many_files,
            }
            alone changing_attributes on Ordinary {
                a_file_has_what_it_had,
                a_directory_has_what_it_had,
                an_unlinked_file_that_is_open_can_be_changed,
                the_top_can_be_changed,
                what_is_not_there_is_not_found,
                a_closed_file_is_refused,
                what_is_in_no_file_system_is_refused,
            }
            alone running_out_of_space on Small {
                a_full_volume_says_so_and_keeps_its_data,
                a_full_volume_takes_an_overwrite,
                an_unlinked_file_gives_its_space_back,
                a_shortened_file_gives_its_space_back,
                an_unlinked_file_that_is_open_keeps_its_space,
            }
            alone piping on Ordinary {
                bytes_come_out_in_order,
                a_read_takes_what_there_is,
                the_end_comes_after_the_last_byte,
                nobody_reads_any_more,
                each_end_goes_one_way,
                a_pipe_has_no_place_to_go_to,
                each_end_is_taken_once,
            }
            alone computing on Ordinary {
                time_does_not_run_backwards,
                sleep_lasts_until_its_time,
                sleep_until_the_past_returns,
                compute_uses_its_span,
                work_of_the_past_is_done,
                a_barrier_of_one_is_open,
            }
            alone measuring on Ordinary {
                what_was_moved_is_counted,
                only_the_timed_part_is_counted,
                many_files_are_written_and_closed,
                a_call_that_failed_is_not_counted,
                what_was_written_has_a_time_when_it_is_durable,
            }
            together together on Ordinary {
                a_barrier_releases_all_at_one_moment,
                what_one_writes_another_reads,
                a_pipeline_moves_more_than_a_pipe_holds,
                a_pipeline_breaks_from_its_end,
                an_exclusive_create_has_one_winner,
                all_change_the_same_names,
            }
        }
    };
}

/// The table of what a ring does, handed to a macro like [`for_each_case`].
macro_rules! for_each_ring_case {
    ($runner:ident) => {
        $runner! {
            alone ringing on Ordinary {
                the_end_of_a_file_cuts_a_read_short,
                what_a_ring_wrote_is_read_back,
                a_ring_has_data_of_its_own,
                a_failed_request_fails_by_itself,
                what_the_ring_does_not_know_is_refused,
                an_impossible_ring_is_refused,
                each_slot_completes_once,
                syncs_complete,
                a_reap_ends_at_its_moment,
                a_ring_that_is_closed_has_nothing_under_way,
                a_worker_may_end_with_requests_under_way,
                what_a_ring_moved_is_counted,
                a_restart_forgets_the_ramp,
                a_response_counts_from_the_intended_start,
            }
            alone ringing_on_a_small_volume on Small {
                a_full_volume_fails_the_requests_that_it_must,
            }
        }
    };
}
