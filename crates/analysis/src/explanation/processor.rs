//! Processor time of programs on real storage, divided into user mode and kernel.
//!
//! The kernel knows the total exactly but divides it by ticks: about 250 times a second it samples
//! the processor's mode. The samples of all kept repetitions must suffice; otherwise the time stays
//! undivided and unattributed.

use super::TimeAccount;
use super::stored::stage_of_estimate;
use crate::layers::Decomposition;
use diskperf_timeline::{Ledger, Nanoseconds, ProgramResult, Stage};

/// Minimum processor time for a division: ten ticks at 250 Hz, the usual rate. With fewer ticks the
/// division depends on their timing rather than on the program (ten leave a standard error of up to
/// a sixth).
const DIVISION_TIME_MIN: Nanoseconds = Nanoseconds::from_millis(40);

/// Division of a program's processor time into user mode and kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct CpuTimeDivision {
    user_time: Nanoseconds,
    system_time: Nanoseconds,
}

impl CpuTimeDivision {
    /// Divides a program's processor time by the ticks of all kept repetitions; `None` where they
    /// are too few.
    pub(super) fn from_result(result: &ProgramResult) -> Option<Self> {
        let workers = || result.kept_repetitions().flat_map(|one| &one.workers);
        let division = Self {
            user_time: workers().map(|worker| worker.user_cpu_time).sum(),
            system_time: workers().map(|worker| worker.system_cpu_time).sum(),
        };
        (division.user_time + division.system_time >= DIVISION_TIME_MIN).then_some(division)
    }

    pub(super) fn user_share_of(self, processor: Nanoseconds) -> Nanoseconds {
        let all = u128::from((self.user_time + self.system_time).0.max(1));
        let user = u128::from(processor.0) * u128::from(self.user_time.0) / all;
        Nanoseconds(user as u64)
    }
}

/// Returns the ledger lines for a processor time: user and system time, or one unattributed line.
pub(super) fn build_ledger_entries(
    division: Option<CpuTimeDivision>,
    processor: Nanoseconds,
) -> [(Stage, Nanoseconds); 2] {
    match division {
        Some(division) => {
            let user = division.user_share_of(processor);
            [
                (Stage::User, user),
                (Stage::SystemCall, processor.since(user)),
            ]
        }
        None => [
            (Stage::Unattributed, processor),
            (Stage::User, Nanoseconds::ZERO),
        ],
    }
}

/// Divides the `system_call` entries of the ledgers, which hold all processor time, into user and
/// system time.
pub fn divide_cpu_time(account: &mut TimeAccount, result: &ProgramResult) {
    let division = CpuTimeDivision::from_result(result);
    let own = account
        .program_ledgers
        .iter_mut()
        .map(|one| &mut one.ledger);
    for ledger in own.chain([&mut account.ledger]) {
        *ledger = divide_ledger_cpu_time(ledger, division);
    }
}

fn divide_ledger_cpu_time(ledger: &Ledger, division: Option<CpuTimeDivision>) -> Ledger {
    let mut table = [0; Stage::COUNT];
    for entry in ledger.entries() {
        if entry.stage == Stage::SystemCall {
            for (stage, ns) in build_ledger_entries(division, entry.duration) {
                table[stage.index()] += ns.0;
            }
        } else {
            table[entry.stage.index()] += entry.duration.0;
        }
    }
    Ledger::from_table(&table)
}

/// Divides the processor time by the layers of `seqread`, which give the parts of one call. The
/// rest is unattributed.
pub fn divide_by_layers(account: &mut TimeAccount, layers: &Decomposition, calls: u64) {
    let own = account
        .program_ledgers
        .iter_mut()
        .map(|one| &mut one.ledger);
    for ledger in own.chain([&mut account.ledger]) {
        let mut left = ledger.stage_duration(Stage::SystemCall).0;
        let mut table = [0; Stage::COUNT];
        for entry in ledger.entries() {
            table[entry.stage.index()] = entry.duration.0;
        }
        table[Stage::SystemCall.index()] = 0;
        for part in &layers.cost_estimates {
            let stage = stage_of_estimate(part);
            if stage == Stage::Device || stage == Stage::Unattributed {
                continue;
            }
            let ns = ((part.mean_ns * calls as f64) as u64).min(left);
            table[stage.index()] += ns;
            left -= ns;
        }
        table[Stage::Unattributed.index()] += left;
        *ledger = Ledger::from_table(&table);
    }
}

/// Describes why the processor time of a program is not divided; `None` where it is.
pub fn describe_cpu_division(result: &ProgramResult) -> Option<String> {
    CpuTimeDivision::from_result(result).is_none().then(|| {
        format!(
            "{}: the CPU time is too short for the kernel's ticks to divide it into user and system time, and is unattributed; use a larger --size or more --runs",
            result.display_title()
        )
    })
}
