//! Coordination of the workers that run at the same time on one drive: which jobs of a fio job file
//! end other jobs, and what the earlier steps of the run left behind.

use crate::file_locks::FileLocks;
use crate::zones::{SharedZones, ZoneTable};
use diskperf_timeline::Nanoseconds;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Scope of an `exitall` of fio: jobs of a job file that end because another job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndScope {
    /// Scope of one reporting group, by its number.
    ExitGroup(u32),
    /// Scope of all jobs that have started.
    StartedJobs,
    /// Scope of all jobs of the job file.
    AllJobs,
}

/// State that the earlier steps of a run left behind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EarlierSteps {
    /// Total duration of the earlier steps. Each step counts from its start to the end of its last
    /// worker.
    pub elapsed_time: Nanoseconds,
    /// Jobs that the earlier steps ended before the current step starts.
    pub ended: BTreeSet<EndScope>,
    /// Write pointers that the earlier steps left, by drive and path.
    pub zone_tables: BTreeMap<(u32, String), ZoneTable>,
}

/// Groups of workers that coordinate with each other during one step, one group for each drive.
#[derive(Debug, Default)]
pub struct WorkerGroups {
    earlier_steps: Arc<EarlierSteps>,
    group_states: Mutex<BTreeMap<u32, Arc<Mutex<WorkerGroupState>>>>,
}

impl WorkerGroups {
    /// Creates the worker groups of a step that follows earlier steps.
    pub fn after_steps(earlier: EarlierSteps) -> Self {
        Self {
            earlier_steps: Arc::new(earlier),
            ..Self::default()
        }
    }

    /// Adds a worker to the group of a drive and returns the worker's handle.
    pub fn add_worker(&self, drive: u32) -> WorkerGroupMember {
        let mut boards = lock_mutex(&self.group_states);
        let board = Arc::clone(boards.entry(drive).or_default());
        let mut seats = lock_mutex(&board);
        seats.drive_index = drive;
        let locks = Arc::clone(&seats.file_locks);
        let seat = seats.member_states.len();
        let must_end = Arc::new(AtomicBool::new(false));
        seats.member_states.push(MemberState {
            must_end_flag: Arc::clone(&must_end),
            ..MemberState::default()
        });
        drop(seats);
        WorkerGroupMember {
            member_index: seat,
            must_end_flag: must_end,
            group_state: board,
            file_locks: locks,
            earlier: Arc::clone(&self.earlier_steps),
        }
    }

    /// Returns the write pointers of all zones, by drive and path.
    pub fn zone_tables(&self) -> BTreeMap<(u32, String), ZoneTable> {
        let mut zones = self.earlier_steps.zone_tables.clone();
        for (drive, board) in &*lock_mutex(&self.group_states) {
            for (path, table) in &lock_mutex(board).zone_tables_by_path {
                zones.insert((*drive, path.clone()), lock_mutex(table).clone());
            }
        }
        zones
    }

    /// Returns the jobs that were ended, on any drive, in this step or in an earlier one.
    pub fn ended_scopes(&self) -> BTreeSet<EndScope> {
        let boards = lock_mutex(&self.group_states);
        let ended = boards
            .values()
            .flat_map(|board| lock_mutex(board).ended_scopes.clone());
        ended
            .chain(self.earlier_steps.ended.iter().copied())
            .collect()
    }
}

/// Handle through which a worker coordinates with the other workers that run at the same time on
/// its drive.
#[derive(Clone, Debug)]
pub struct WorkerGroupMember {
    member_index: usize,
    must_end_flag: Arc<AtomicBool>,
    group_state: Arc<Mutex<WorkerGroupState>>,
    file_locks: Arc<FileLocks>,
    earlier: Arc<EarlierSteps>,
}

impl Default for WorkerGroupMember {
    /// Returns the handle of a worker that runs alone in the first step.
    fn default() -> Self {
        WorkerGroups::default().add_worker(0)
    }
}

/// State that the workers of a drive share.
#[derive(Debug, Default)]
struct WorkerGroupState {
    member_states: Vec<MemberState>,
    ended_scopes: BTreeSet<EndScope>,
    /// Files that some worker has not released yet, by path.
    held_files: HashMap<String, HeldFile>,
    file_locks: Arc<FileLocks>,
    drive_index: u32,
    /// Write pointers of the drive's files, by path.
    zone_tables_by_path: BTreeMap<String, SharedZones>,
}

/// File that one or several workers hold.
#[derive(Clone, Copy, Debug, Default)]
struct HeldFile {
    holder_count: u32,
    /// Whether a worker that released the file wants it removed.
    must_remove: bool,
}

/// State of a worker that the other workers see.
#[derive(Debug, Default)]
struct MemberState {
    group_member: GroupMember,
    has_started: bool,
    has_ended: bool,
    must_end_flag: Arc<AtomicBool>,
    /// I/Os that the worker counted against its share of a flow.
    flow_io_count: u64,
    completed_ios: CompletedIos,
}

/// I/Os that a worker completed since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CompletedIos {
    pub(crate) io_count: u64,
    pub(crate) bytes: u64,
    /// Sum of the response times of the completed I/Os, in nanoseconds.
    pub(crate) response_ns_total: u64,
}

impl CompletedIos {
    pub(crate) fn add_ios(&mut self, other: CompletedIos) {
        self.io_count += other.io_count;
        self.bytes += other.bytes;
        self.response_ns_total += other.response_ns_total;
    }
}

/// Share of a worker in a fio flow, which divides the I/Os of all workers with the same flow id by
/// weight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowShare {
    pub(crate) flow_id: u32,
    pub(crate) flow_weight: u32,
}

/// Properties of a worker that the other workers must know.
#[derive(Clone, Debug, Default)]
pub(crate) struct GroupMember {
    /// Name of the fio job that the worker runs.
    pub(crate) job_name: String,
    /// Paths of the worker's files.
    pub(crate) file_paths: Vec<String>,
    /// Reporting group of the worker, by its number.
    pub(crate) group_number: u32,
    /// Whether the worker ends other workers, while it runs or when it ends.
    pub(crate) ends_whole_group: bool,
    /// Whether the worker counts for the steady state of its reporting group.
    pub(crate) is_in_steady_group: bool,
    /// Share of the worker in a flow. It is `None` without a flow and after the worker has ended.
    pub(crate) flow_share: Option<FlowShare>,
    /// Whether the worker does I/O.
    pub(crate) does_io: bool,
}

impl WorkerGroupMember {
    /// Registers the worker for a repetition, before any worker starts.
    pub(crate) fn register(&self, member: GroupMember) {
        let mut board = self.lock_group_state();
        let ended = &self.earlier.ended;
        let must_end = ended.contains(&EndScope::AllJobs)
            || ended.contains(&EndScope::ExitGroup(member.group_number));
        self.must_end_flag.store(must_end, Ordering::Relaxed);
        board.ended_scopes.clear();
        board.zone_tables_by_path.clear();
        for path in &member.file_paths {
            board
                .held_files
                .entry(path.clone())
                .or_default()
                .holder_count += 1;
        }
        let seat = &mut board.member_states[self.member_index];
        *seat = MemberState {
            group_member: member,
            must_end_flag: Arc::clone(&self.must_end_flag),
            ..MemberState::default()
        };
    }

    /// Marks the worker as started: from now on it does I/O.
    pub(crate) fn record_start(&self) {
        self.lock_group_state().member_states[self.member_index].has_started = true;
    }

    /// Returns the total duration of the earlier steps.
    pub(crate) fn elapsed_before(&self) -> Nanoseconds {
        self.earlier.elapsed_time
    }

    pub(crate) fn may_be_ended_by_others(&self) -> bool {
        let board = self.lock_group_state();
        board.member_states.len() > 1
            && board
                .member_states
                .iter()
                .any(|seat| seat.group_member.ends_whole_group)
    }

    pub(crate) fn must_end(&self) -> bool {
        self.must_end_flag.load(Ordering::Relaxed)
    }

    /// Ends other workers, and the jobs of the same scope that start in later steps.
    pub(crate) fn end_other_jobs(&self, ended: EndScope) {
        let mut board = self.lock_group_state();
        board.ended_scopes.insert(ended);
        for seat in &board.member_states {
            let is_meant = match ended {
                EndScope::ExitGroup(group) => seat.group_member.group_number == group,
                EndScope::StartedJobs => seat.has_started,
                EndScope::AllJobs => true,
            };
            if is_meant {
                seat.must_end_flag.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Reports whether the worker's share of its flow permits another I/O, and counts that I/O. As
    /// in fio, a worker may issue while its share of the flow's I/Os does not exceed its share of
    /// the weights.
    pub(crate) fn take_flow_turn(&self) -> bool {
        let mut board = self.lock_group_state();
        let Some(share) = board.member_states[self.member_index]
            .group_member
            .flow_share
        else {
            return true;
        };
        // fio counts one I/O more than there were.
        let (mut ios, mut weight) = (1u128, 0u128);
        for seat in &board.member_states {
            let same = seat
                .group_member
                .flow_share
                .filter(|other| other.flow_id == share.flow_id);
            ios += same.map_or(0, |_| u128::from(seat.flow_io_count));
            weight += same.map_or(0, |other| u128::from(other.flow_weight));
        }
        let own = &mut board.member_states[self.member_index].flow_io_count;
        let is_allowed = u128::from(*own) * weight <= u128::from(share.flow_weight) * ios;
        *own += u64::from(is_allowed);
        is_allowed
    }

    /// Reports whether a worker of the job with this name still runs, among the workers that
    /// registered before this one. Workers of jobs further up in the job file always register
    /// before.
    pub(crate) fn has_running_job(&self, name: &str) -> bool {
        let board = self.lock_group_state();
        let mut above = board.member_states[..self.member_index].iter();
        above.any(|seat| !seat.has_ended && seat.group_member.job_name == name)
    }

    /// Releases the worker's files and returns the paths to be removed: files that some worker
    /// wants removed and that no worker holds any longer. A shared file therefore stays until its
    /// last user has opened and used it.
    pub(crate) fn release_files(&self, removes: bool) -> Vec<String> {
        let mut board = self.lock_group_state();
        let mut paths = std::mem::take(
            &mut board.member_states[self.member_index]
                .group_member
                .file_paths,
        );
        paths.retain(|path| {
            let Some(shared) = board.held_files.get_mut(path) else {
                return false;
            };
            shared.holder_count -= 1;
            shared.must_remove |= removes;
            if shared.holder_count > 0 {
                return false;
            }
            let is_to_be_removed = shared.must_remove;
            board.held_files.remove(path);
            is_to_be_removed
        });
        paths
    }

    /// Marks the worker as ended, so that it has no share of a flow and no other worker waits for
    /// it. The caller wakes waiting workers by a notice.
    pub fn leave_group(&self) {
        let mut board = self.lock_group_state();
        let seat = &mut board.member_states[self.member_index];
        seat.group_member.flow_share = None;
        seat.has_ended = true;
    }

    /// Reports whether all workers that do I/O have ended. It is false if no worker does I/O.
    pub(crate) fn has_all_io_ended(&self) -> bool {
        let board = self.lock_group_state();
        let mut of_io = board
            .member_states
            .iter()
            .filter(|seat| seat.group_member.does_io);
        let has_any = board
            .member_states
            .iter()
            .any(|seat| seat.group_member.does_io);
        has_any && of_io.all(|seat| seat.has_ended)
    }

    /// Returns the write pointers of a file, initially as the earlier steps left them.
    pub(crate) fn zone_table_of_path(&self, path: &str) -> SharedZones {
        let mut board = self.lock_group_state();
        let key = (board.drive_index, path.to_owned());
        let left = || {
            Arc::new(Mutex::new(
                self.earlier
                    .zone_tables
                    .get(&key)
                    .cloned()
                    .unwrap_or_default(),
            ))
        };
        Arc::clone(
            board
                .zone_tables_by_path
                .entry(path.to_owned())
                .or_insert_with(left),
        )
    }

    /// Returns the file locks that the drive's workers share.
    pub(crate) fn file_locks(&self) -> &Arc<FileLocks> {
        &self.file_locks
    }

    /// Publishes the I/Os that the worker has completed so far.
    pub(crate) fn publish_completed_ios(&self, done: CompletedIos) {
        self.lock_group_state().member_states[self.member_index].completed_ios = done;
    }

    /// Sums the published I/Os of those workers of the reporting group that count for its steady
    /// state.
    pub(crate) fn completed_ios_of_group(&self) -> CompletedIos {
        let board = self.lock_group_state();
        let group = board.member_states[self.member_index]
            .group_member
            .group_number;
        let mut sum = CompletedIos::default();
        for seat in &board.member_states {
            if seat.group_member.is_in_steady_group && seat.group_member.group_number == group {
                sum.add_ios(seat.completed_ios);
            }
        }
        sum
    }

    /// Reports whether the worker is the last of its reporting group that counts for the group's
    /// steady state. That worker checks the steady state.
    pub(crate) fn is_last_in_steady_group(&self) -> bool {
        let board = self.lock_group_state();
        let group = board.member_states[self.member_index]
            .group_member
            .group_number;
        let counts = |seat: &MemberState| {
            seat.group_member.is_in_steady_group && seat.group_member.group_number == group
        };
        board.member_states.iter().rposition(counts) == Some(self.member_index)
    }

    fn lock_group_state(&self) -> MutexGuard<'_, WorkerGroupState> {
        lock_mutex(&self.group_state)
    }
}

/// Locks a mutex and ignores poisoning: a worker that panicked while it held the lock left no
/// half-made change.
fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entered(companies: &WorkerGroups, groups: &[u32]) -> Vec<WorkerGroupMember> {
        let enter = |group: &u32| {
            let company = companies.add_worker(0);
            company.register(GroupMember {
                group_number: *group,
                ends_whole_group: true,
                ..GroupMember::default()
            });
            company
        };
        groups.iter().map(enter).collect()
    }

    #[test]
    fn shares_of_a_flow_go_by_weight_until_one_leaves() {
        let companies = WorkerGroups::default();
        let shares = [(1, 3), (1, 1), (2, 1)].map(|(id, weight)| {
            let company = companies.add_worker(0);
            company.register(GroupMember {
                flow_share: Some(FlowShare {
                    flow_id: id,
                    flow_weight: weight,
                }),
                ..GroupMember::default()
            });
            company
        });
        let mut ios = [0; 3];
        for _ in 0..1000 {
            for (company, ios) in shares.iter().zip(&mut ios) {
                *ios += u32::from(company.take_flow_turn());
            }
        }
        assert_eq!(ios, [1000, 334, 1000]);
        shares[0].leave_group();
        assert!((0..1000).all(|_| shares[1].take_flow_turn()));
    }

    #[test]
    fn a_shared_file_is_removed_by_the_last_worker_where_any_wants_that() {
        for (removes, expected) in [
            ([false, false], [false, false]),
            ([true, false], [false, true]),
            ([false, true], [false, true]),
        ] {
            let companies = WorkerGroups::default();
            let all = [(); 2].map(|()| {
                let company = companies.add_worker(0);
                company.register(GroupMember {
                    file_paths: vec!["f".to_owned()],
                    ..GroupMember::default()
                });
                company
            });
            let released = all.iter().zip(removes);
            let released = released.map(|(one, removes)| !one.release_files(removes).is_empty());
            assert_eq!(released.collect::<Vec<_>>(), expected, "{removes:?}");
        }
    }

    #[test]
    fn a_job_is_in_progress_until_its_last_worker_leaves() {
        let companies = WorkerGroups::default();
        let all = ["a", "a", "b"].map(|name| {
            let company = companies.add_worker(0);
            company.register(GroupMember {
                job_name: name.to_owned(),
                ..GroupMember::default()
            });
            company
        });
        assert!(all[2].has_running_job("a"));
        all[0].leave_group();
        assert!(all[2].has_running_job("a"));
        all[1].leave_group();
        assert!(!all[2].has_running_job("a"));
        assert!(!all[0].has_running_job("b"), "`b` stands below");
    }

    #[test]
    fn an_end_reaches_its_scope_and_no_further() {
        for (ended, expected) in [
            (EndScope::ExitGroup(0), [true, true, false]),
            (EndScope::StartedJobs, [true, false, true]),
            (EndScope::AllJobs, [true, true, true]),
        ] {
            let companies = WorkerGroups::default();
            let all = entered(&companies, &[0, 0, 1]);
            all[0].record_start();
            all[2].record_start();
            all[0].end_other_jobs(ended);
            let must_end: Vec<bool> = all.iter().map(WorkerGroupMember::must_end).collect();
            assert_eq!(must_end, expected, "{ended:?}");
            assert_eq!(companies.ended_scopes(), BTreeSet::from([ended]));
        }
    }

    #[test]
    fn what_a_step_ended_stays_ended_in_the_next_and_not_in_the_next_repetition() {
        let earlier = EarlierSteps {
            ended: BTreeSet::from([EndScope::ExitGroup(1)]),
            ..EarlierSteps::default()
        };
        let all = entered(&WorkerGroups::after_steps(earlier), &[0, 1]);
        assert_eq!([all[0].must_end(), all[1].must_end()], [false, true]);
        all[0].end_other_jobs(EndScope::ExitGroup(0));
        all[0].register(GroupMember::default());
        assert!(!all[0].must_end());
    }
}
