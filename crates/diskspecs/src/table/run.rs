//! Key tables of the blocks between drive and host, and of the blocks of a simulation run without
//! effect here.

use super::KeyEffect::{Ignored, Used};
use super::{
    SpecificationKey, block, flag, integer, integer_at_least, integer_between, list, number,
    optional, positive, share, time_ms, word,
};

pub(crate) const DISKSIM_OUTPUT: &str = "affects only DiskSim's output";
pub(crate) const LOAD_FROM_TRACE: &str = "a trace or a program generates the load";
pub(crate) const SINGLE_DRIVE: &str = "each drive is modelled separately";
pub(crate) const CONSTANT_TIMES: &str = "a drive with constant times has no mechanics to import";
pub(crate) const SEPARATE_CACHE: &str = "a cache outside the drive is not modelled";
pub(crate) const ONE_REQUEST_AT_A_TIME: &str = "only one request is in flight at a time";
const ALONE_ON_BUS: &str = "the drive is alone on its bus";
const DRIVE_TIME_ONLY: &str = "only the drive's time is measured";

#[rustfmt::skip]
pub(super) const BUS: &[SpecificationKey] = &[
    integer_between("type", 1, 2, Ignored(ALONE_ON_BUS)),
    integer_between("Arbitration type", 1, 2, Ignored(ALONE_ON_BUS)),
    number("Arbitration time", Used),
    number("Read block transfer time", Used),
    number("Write block transfer time", Used),
    integer("Print stats", Ignored(DISKSIM_OUTPUT)),
];

#[rustfmt::skip]
pub(super) const CONTROLLER: &[SpecificationKey] = &[
    integer_between("type", 1, 3, Ignored("a controller passes requests on: its cache is not modelled")),
    time_ms("Scale for delays", Used),
    number("Bulk sector transfer time", Used),
    integer("Maximum queue length", Ignored(ONE_REQUEST_AT_A_TIME)),
    flag("Print stats", Ignored(DISKSIM_OUTPUT)),
    optional(block("Scheduler", Ignored(ONE_REQUEST_AT_A_TIME))),
    optional(block("Cache", Ignored(SEPARATE_CACHE))),
    optional(integer_at_least("Max per-disk pending count", 0, Ignored(ONE_REQUEST_AT_A_TIME))),
];

#[rustfmt::skip]
pub(super) const DRIVER: &[SpecificationKey] = &[
    integer_at_least("type", 0, Ignored(ONE_REQUEST_AT_A_TIME)),
    number("Constant access time", Ignored(DRIVE_TIME_ONLY)),
    flag("Use queueing in subsystem", Ignored(ONE_REQUEST_AT_A_TIME)),
    block("Scheduler", Ignored(ONE_REQUEST_AT_A_TIME)),
];

#[rustfmt::skip]
pub(super) const LOGORG: &[SpecificationKey] = &[
    word("Addressing mode", Ignored(SINGLE_DRIVE)),
    word("Distribution scheme", Ignored(SINGLE_DRIVE)),
    word("Redundancy scheme", Ignored(SINGLE_DRIVE)),
    optional(word("Components", Ignored(SINGLE_DRIVE))),
    list("devices", Ignored(SINGLE_DRIVE)),
    integer_at_least("Stripe unit", 1, Ignored(SINGLE_DRIVE)),
    flag("Synch writes for safety", Ignored(SINGLE_DRIVE)),
    integer_at_least("Number of copies", 1, Ignored(SINGLE_DRIVE)),
    integer_between("Copy choice on read", 1, 6, Ignored(SINGLE_DRIVE)),
    share("RMW vs. reconstruct", Ignored(SINGLE_DRIVE)),
    integer_at_least("Parity stripe unit", 1, Ignored(SINGLE_DRIVE)),
    integer_between("Parity rotation type", 1, 4, Ignored(SINGLE_DRIVE)),
    optional(time_ms("Time stamp interval", Ignored(DISKSIM_OUTPUT))),
    optional(time_ms("Time stamp start time", Ignored(DISKSIM_OUTPUT))),
    optional(time_ms("Time stamp stop time", Ignored(DISKSIM_OUTPUT))),
    optional(word("Time stamp file name", Ignored(DISKSIM_OUTPUT))),
];

#[rustfmt::skip]
pub(super) const SYNTHGEN: &[SpecificationKey] = &[
    integer_at_least("Storage capacity per device", 1, Ignored(LOAD_FROM_TRACE)),
    list("devices", Ignored(LOAD_FROM_TRACE)),
    integer_at_least("Blocking factor", 1, Ignored(LOAD_FROM_TRACE)),
    share("Probability of sequential access", Ignored(LOAD_FROM_TRACE)),
    share("Probability of local access", Ignored(LOAD_FROM_TRACE)),
    share("Probability of read access", Ignored(LOAD_FROM_TRACE)),
    share("Probability of time-critical request", Ignored(LOAD_FROM_TRACE)),
    share("Probability of time-limited request", Ignored(LOAD_FROM_TRACE)),
    list("Time-limited think times", Ignored(LOAD_FROM_TRACE)),
    list("General inter-arrival times", Ignored(LOAD_FROM_TRACE)),
    list("Sequential inter-arrival times", Ignored(LOAD_FROM_TRACE)),
    list("Local inter-arrival times", Ignored(LOAD_FROM_TRACE)),
    list("Local distances", Ignored(LOAD_FROM_TRACE)),
    list("Sizes", Ignored(LOAD_FROM_TRACE)),
];

#[rustfmt::skip]
pub(super) const SYNTHIO: &[SpecificationKey] = &[
    integer_at_least("Number of I/O requests to generate", 1, Ignored(LOAD_FROM_TRACE)),
    positive("Maximum time of trace generated", Ignored(LOAD_FROM_TRACE)),
    flag("System call/return with each request", Ignored(LOAD_FROM_TRACE)),
    time_ms("Think time from call to request", Ignored(LOAD_FROM_TRACE)),
    time_ms("Think time from request to return", Ignored(LOAD_FROM_TRACE)),
    list("Generators", Ignored(LOAD_FROM_TRACE)),
];

#[rustfmt::skip]
pub(super) const PROCESS_FLOW: &[SpecificationKey] = &[
    integer_at_least("Number of processors", 1, Ignored(LOAD_FROM_TRACE)),
    time_ms("Process-Flow Time Scale", Ignored(LOAD_FROM_TRACE)),
];

#[rustfmt::skip]
pub(super) const SIMPLE_DISK: &[SpecificationKey] = &[
    block("Scheduler", Ignored(CONSTANT_TIMES)),
    integer_at_least("Max queue length", 0, Ignored(CONSTANT_TIMES)),
    integer_at_least("Block count", 1, Ignored(CONSTANT_TIMES)),
    optional(time_ms("Bus transaction latency", Ignored(CONSTANT_TIMES))),
    time_ms("Bulk sector transfer time", Ignored(CONSTANT_TIMES)),
    flag("Never disconnect", Ignored(CONSTANT_TIMES)),
    flag("Print stats", Ignored(CONSTANT_TIMES)),
    time_ms("Command overhead", Ignored(CONSTANT_TIMES)),
    optional(time_ms("Constant access time", Ignored(CONSTANT_TIMES))),
    time_ms("Access time", Ignored(CONSTANT_TIMES)),
];

/// Keys of a cache block. DiskSim names the ranges of its cache policies, from `CACHE_REPLACE_MIN`
/// to `CACHE_PREFETCH_MAX`, but not their numbers, so any whole number is accepted.
#[rustfmt::skip]
pub(super) const CACHE_MEMORY: &[SpecificationKey] = &[
    integer_at_least("Cache size", 0, Ignored(SEPARATE_CACHE)),
    optional(list("SLRU segments", Ignored(SEPARATE_CACHE))),
    integer_at_least("Line size", 0, Ignored(SEPARATE_CACHE)),
    integer_at_least("Bit granularity", 1, Ignored(SEPARATE_CACHE)),
    integer_at_least("Lock granularity", 1, Ignored(SEPARATE_CACHE)),
    flag("Shared read locks", Ignored(SEPARATE_CACHE)),
    integer_at_least("Max request size", 0, Ignored(SEPARATE_CACHE)),
    integer("Replacement policy", Ignored(SEPARATE_CACHE)),
    integer("Allocation policy", Ignored(SEPARATE_CACHE)),
    integer("Write scheme", Ignored(SEPARATE_CACHE)),
    integer("Flush policy", Ignored(SEPARATE_CACHE)),
    time_ms("Flush period", Ignored(SEPARATE_CACHE)),
    number("Flush idle delay", Ignored(SEPARATE_CACHE)),
    integer_at_least("Flush max line cluster", 0, Ignored(SEPARATE_CACHE)),
    integer("Read prefetch type", Ignored(SEPARATE_CACHE)),
    integer("Write prefetch type", Ignored(SEPARATE_CACHE)),
    flag("Line-by-line fetches", Ignored(SEPARATE_CACHE)),
    integer_at_least("Max gather", 0, Ignored(SEPARATE_CACHE)),
];

#[rustfmt::skip]
pub(super) const IOSIM: &[SpecificationKey] = &[
    optional(number("I/O Trace Time Scale", Ignored(LOAD_FROM_TRACE))),
    optional(list("I/O Mappings", Ignored(LOAD_FROM_TRACE))),
];

#[rustfmt::skip]
pub(super) const GLOBAL: &[SpecificationKey] = &[
    optional(integer("Init Seed", Ignored(LOAD_FROM_TRACE))),
    optional(flag("Init Seed with time", Ignored(LOAD_FROM_TRACE))),
    optional(integer("Real Seed", Ignored(LOAD_FROM_TRACE))),
    optional(flag("Real Seed with time", Ignored(LOAD_FROM_TRACE))),
    optional(number("Statistic warm-up time", Ignored(DISKSIM_OUTPUT))),
    optional(integer("Statistic warm-up IOs", Ignored(DISKSIM_OUTPUT))),
    word("Stat definition file", Ignored(DISKSIM_OUTPUT)),
    optional(word("Output file for trace of I/O requests simulated", Ignored(DISKSIM_OUTPUT))),
    optional(word("Detailed execution trace", Ignored(DISKSIM_OUTPUT))),
];
