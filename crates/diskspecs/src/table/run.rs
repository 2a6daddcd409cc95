//! Key tables of the blocks between drive and host, and of the blocks of a simulation run without
//! effect here.

use super::Effect::{None, Used};
use super::{
    Key, block, flag, integer, integer_at_least, integer_between, list, number, optional, positive,
    share, time_ms, word,
};

pub(crate) const DISKSIM_OUTPUT: &str = "of DiskSim's own output";
pub(crate) const LOAD_FROM_TRACE: &str = "a trace or a program is the load";
pub(crate) const SINGLE_DRIVE: &str = "each drive is alone";
pub(crate) const CONSTANT_TIMES: &str = "a drive of constant times has no mechanics to import";
pub(crate) const SEPARATE_CACHE: &str = "a cache beside the drive is not modelled";
pub(crate) const ONE_REQUEST_AT_A_TIME: &str = "one request at a time is under way";
const ALONE_ON_BUS: &str = "the drive is alone on its bus";
const DRIVE_TIME_ONLY: &str = "the drive's own time is what is measured";

#[rustfmt::skip]
pub(super) const BUS: &[Key] = &[
    integer_between("type", 1, 2, None(ALONE_ON_BUS)),
    integer_between("Arbitration type", 1, 2, None(ALONE_ON_BUS)),
    number("Arbitration time", Used),
    number("Read block transfer time", Used),
    number("Write block transfer time", Used),
    integer("Print stats", None(DISKSIM_OUTPUT)),
];

#[rustfmt::skip]
pub(super) const CONTROLLER: &[Key] = &[
    integer_between("type", 1, 3, None("a controller passes requests on: its cache is not modelled")),
    time_ms("Scale for delays", Used),
    number("Bulk sector transfer time", Used),
    integer("Maximum queue length", None(ONE_REQUEST_AT_A_TIME)),
    flag("Print stats", None(DISKSIM_OUTPUT)),
    optional(block("Scheduler", None(ONE_REQUEST_AT_A_TIME))),
    optional(block("Cache", None(SEPARATE_CACHE))),
    optional(integer_at_least("Max per-disk pending count", 0, None(ONE_REQUEST_AT_A_TIME))),
];

#[rustfmt::skip]
pub(super) const DRIVER: &[Key] = &[
    integer_at_least("type", 0, None(ONE_REQUEST_AT_A_TIME)),
    number("Constant access time", None(DRIVE_TIME_ONLY)),
    flag("Use queueing in subsystem", None(ONE_REQUEST_AT_A_TIME)),
    block("Scheduler", None(ONE_REQUEST_AT_A_TIME)),
];

#[rustfmt::skip]
pub(super) const LOGORG: &[Key] = &[
    word("Addressing mode", None(SINGLE_DRIVE)),
    word("Distribution scheme", None(SINGLE_DRIVE)),
    word("Redundancy scheme", None(SINGLE_DRIVE)),
    optional(word("Components", None(SINGLE_DRIVE))),
    list("devices", None(SINGLE_DRIVE)),
    integer_at_least("Stripe unit", 1, None(SINGLE_DRIVE)),
    flag("Synch writes for safety", None(SINGLE_DRIVE)),
    integer_at_least("Number of copies", 1, None(SINGLE_DRIVE)),
    integer_between("Copy choice on read", 1, 6, None(SINGLE_DRIVE)),
    share("RMW vs. reconstruct", None(SINGLE_DRIVE)),
    integer_at_least("Parity stripe unit", 1, None(SINGLE_DRIVE)),
    integer_between("Parity rotation type", 1, 4, None(SINGLE_DRIVE)),
    optional(time_ms("Time stamp interval", None(DISKSIM_OUTPUT))),
    optional(time_ms("Time stamp start time", None(DISKSIM_OUTPUT))),
    optional(time_ms("Time stamp stop time", None(DISKSIM_OUTPUT))),
    optional(word("Time stamp file name", None(DISKSIM_OUTPUT))),
];

#[rustfmt::skip]
pub(super) const SYNTHGEN: &[Key] = &[
    integer_at_least("Storage capacity per device", 1, None(LOAD_FROM_TRACE)),
    list("devices", None(LOAD_FROM_TRACE)),
    integer_at_least("Blocking factor", 1, None(LOAD_FROM_TRACE)),
    share("Probability of sequential access", None(LOAD_FROM_TRACE)),
    share("Probability of local access", None(LOAD_FROM_TRACE)),
    share("Probability of read access", None(LOAD_FROM_TRACE)),
    share("Probability of time-critical request", None(LOAD_FROM_TRACE)),
    share("Probability of time-limited request", None(LOAD_FROM_TRACE)),
    list("Time-limited think times", None(LOAD_FROM_TRACE)),
    list("General inter-arrival times", None(LOAD_FROM_TRACE)),
    list("Sequential inter-arrival times", None(LOAD_FROM_TRACE)),
    list("Local inter-arrival times", None(LOAD_FROM_TRACE)),
    list("Local distances", None(LOAD_FROM_TRACE)),
    list("Sizes", None(LOAD_FROM_TRACE)),
];

#[rustfmt::skip]
pub(super) const SYNTHIO: &[Key] = &[
    integer_at_least("Number of I/O requests to generate", 1, None(LOAD_FROM_TRACE)),
    positive("Maximum time of trace generated", None(LOAD_FROM_TRACE)),
    flag("System call/return with each request", None(LOAD_FROM_TRACE)),
    time_ms("Think time from call to request", None(LOAD_FROM_TRACE)),
    time_ms("Think time from request to return", None(LOAD_FROM_TRACE)),
    list("Generators", None(LOAD_FROM_TRACE)),
];

#[rustfmt::skip]
pub(super) const PROCESS_FLOW: &[Key] = &[
    integer_at_least("Number of processors", 1, None(LOAD_FROM_TRACE)),
    time_ms("Process-Flow Time Scale", None(LOAD_FROM_TRACE)),
];

#[rustfmt::skip]
pub(super) const SIMPLE_DISK: &[Key] = &[
    block("Scheduler", None(CONSTANT_TIMES)),
    integer_at_least("Max queue length", 0, None(CONSTANT_TIMES)),
    integer_at_least("Block count", 1, None(CONSTANT_TIMES)),
    optional(time_ms("Bus transaction latency", None(CONSTANT_TIMES))),
    time_ms("Bulk sector transfer time", None(CONSTANT_TIMES)),
    flag("Never disconnect", None(CONSTANT_TIMES)),
    flag("Print stats", None(CONSTANT_TIMES)),
    time_ms("Command overhead", None(CONSTANT_TIMES)),
    optional(time_ms("Constant access time", None(CONSTANT_TIMES))),
    time_ms("Access time", None(CONSTANT_TIMES)),
];

/// Keys of a cache block. DiskSim names the ranges of its cache policies, from `CACHE_REPLACE_MIN`
/// to `CACHE_PREFETCH_MAX`, but not their numbers, so any whole number is accepted.
#[rustfmt::skip]
pub(super) const CACHE_MEMORY: &[Key] = &[
    integer_at_least("Cache size", 0, None(SEPARATE_CACHE)),
    optional(list("SLRU segments", None(SEPARATE_CACHE))),
    integer_at_least("Line size", 0, None(SEPARATE_CACHE)),
    integer_at_least("Bit granularity", 1, None(SEPARATE_CACHE)),
    integer_at_least("Lock granularity", 1, None(SEPARATE_CACHE)),
    flag("Shared read locks", None(SEPARATE_CACHE)),
    integer_at_least("Max request size", 0, None(SEPARATE_CACHE)),
    integer("Replacement policy", None(SEPARATE_CACHE)),
    integer("Allocation policy", None(SEPARATE_CACHE)),
    integer("Write scheme", None(SEPARATE_CACHE)),
    integer("Flush policy", None(SEPARATE_CACHE)),
    time_ms("Flush period", None(SEPARATE_CACHE)),
    number("Flush idle delay", None(SEPARATE_CACHE)),
    integer_at_least("Flush max line cluster", 0, None(SEPARATE_CACHE)),
    integer("Read prefetch type", None(SEPARATE_CACHE)),
    integer("Write prefetch type", None(SEPARATE_CACHE)),
    flag("Line-by-line fetches", None(SEPARATE_CACHE)),
    integer_at_least("Max gather", 0, None(SEPARATE_CACHE)),
];

#[rustfmt::skip]
pub(super) const IOSIM: &[Key] = &[
    optional(number("I/O Trace Time Scale", None(LOAD_FROM_TRACE))),
    optional(list("I/O Mappings", None(LOAD_FROM_TRACE))),
];

#[rustfmt::skip]
pub(super) const GLOBAL: &[Key] = &[
    optional(integer("Init Seed", None(LOAD_FROM_TRACE))),
    optional(flag("Init Seed with time", None(LOAD_FROM_TRACE))),
    optional(integer("Real Seed", None(LOAD_FROM_TRACE))),
    optional(flag("Real Seed with time", None(LOAD_FROM_TRACE))),
    optional(number("Statistic warm-up time", None(DISKSIM_OUTPUT))),
    optional(integer("Statistic warm-up IOs", None(DISKSIM_OUTPUT))),
    word("Stat definition file", None(DISKSIM_OUTPUT)),
    optional(word("Output file for trace of I/O requests simulated", None(DISKSIM_OUTPUT))),
    optional(word("Detailed execution trace", None(DISKSIM_OUTPUT))),
];
