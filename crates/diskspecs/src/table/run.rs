//! Key tables of the blocks between drive and host, and of the blocks of a simulation run without
//! effect here.

use super::Effect::{None, Used};
use super::{
    Key, at_least, between, block, flag, integer, list, number, optional, positive, share, time,
    word,
};

pub(crate) const OUTPUT: &str = "of DiskSim's own output";
pub(crate) const LOAD: &str = "a trace or a program is the load";
pub(crate) const WHOLE_DRIVE: &str = "each drive is alone";
pub(crate) const SIMPLE: &str = "a drive of constant times has no mechanics to import";
pub(crate) const OTHER_CACHE: &str = "a cache beside the drive is not modelled";
pub(crate) const ONE_REQUEST: &str = "one request at a time is under way";
const ALONE: &str = "the drive is alone on its bus";
const DRIVE_TIME: &str = "the drive's own time is what is measured";

#[rustfmt::skip]
pub(super) const BUS: &[Key] = &[
    between("type", 1, 2, None(ALONE)),
    between("Arbitration type", 1, 2, None(ALONE)),
    number("Arbitration time", Used),
    number("Read block transfer time", Used),
    number("Write block transfer time", Used),
    integer("Print stats", None(OUTPUT)),
];

#[rustfmt::skip]
pub(super) const CONTROLLER: &[Key] = &[
    between("type", 1, 3, None("a controller passes requests on: its cache is not modelled")),
    time("Scale for delays", Used),
    number("Bulk sector transfer time", Used),
    integer("Maximum queue length", None(ONE_REQUEST)),
    flag("Print stats", None(OUTPUT)),
    optional(block("Scheduler", None(ONE_REQUEST))),
    optional(block("Cache", None(OTHER_CACHE))),
    optional(at_least("Max per-disk pending count", 0, None(ONE_REQUEST))),
];

#[rustfmt::skip]
pub(super) const DRIVER: &[Key] = &[
    at_least("type", 0, None(ONE_REQUEST)),
    number("Constant access time", None(DRIVE_TIME)),
    flag("Use queueing in subsystem", None(ONE_REQUEST)),
    block("Scheduler", None(ONE_REQUEST)),
];

#[rustfmt::skip]
pub(super) const LOGORG: &[Key] = &[
    word("Addressing mode", None(WHOLE_DRIVE)),
    word("Distribution scheme", None(WHOLE_DRIVE)),
    word("Redundancy scheme", None(WHOLE_DRIVE)),
    optional(word("Components", None(WHOLE_DRIVE))),
    list("devices", None(WHOLE_DRIVE)),
    at_least("Stripe unit", 1, None(WHOLE_DRIVE)),
    flag("Synch writes for safety", None(WHOLE_DRIVE)),
    at_least("Number of copies", 1, None(WHOLE_DRIVE)),
    between("Copy choice on read", 1, 6, None(WHOLE_DRIVE)),
    share("RMW vs. reconstruct", None(WHOLE_DRIVE)),
    at_least("Parity stripe unit", 1, None(WHOLE_DRIVE)),
    between("Parity rotation type", 1, 4, None(WHOLE_DRIVE)),
    optional(time("Time stamp interval", None(OUTPUT))),
    optional(time("Time stamp start time", None(OUTPUT))),
    optional(time("Time stamp stop time", None(OUTPUT))),
    optional(word("Time stamp file name", None(OUTPUT))),
];

#[rustfmt::skip]
pub(super) const SYNTHGEN: &[Key] = &[
    at_least("Storage capacity per device", 1, None(LOAD)),
    list("devices", None(LOAD)),
    at_least("Blocking factor", 1, None(LOAD)),
    share("Probability of sequential access", None(LOAD)),
    share("Probability of local access", None(LOAD)),
    share("Probability of read access", None(LOAD)),
    share("Probability of time-critical request", None(LOAD)),
    share("Probability of time-limited request", None(LOAD)),
    list("Time-limited think times", None(LOAD)),
    list("General inter-arrival times", None(LOAD)),
    list("Sequential inter-arrival times", None(LOAD)),
    list("Local inter-arrival times", None(LOAD)),
    list("Local distances", None(LOAD)),
    list("Sizes", None(LOAD)),
];

#[rustfmt::skip]
pub(super) const SYNTHIO: &[Key] = &[
    at_least("Number of I/O requests to generate", 1, None(LOAD)),
    positive("Maximum time of trace generated", None(LOAD)),
    flag("System call/return with each request", None(LOAD)),
    time("Think time from call to request", None(LOAD)),
    time("Think time from request to return", None(LOAD)),
    list("Generators", None(LOAD)),
];

#[rustfmt::skip]
pub(super) const PROCESS_FLOW: &[Key] = &[
    at_least("Number of processors", 1, None(LOAD)),
    time("Process-Flow Time Scale", None(LOAD)),
];

#[rustfmt::skip]
pub(super) const SIMPLE_DISK: &[Key] = &[
    block("Scheduler", None(SIMPLE)),
    at_least("Max queue length", 0, None(SIMPLE)),
    at_least("Block count", 1, None(SIMPLE)),
    optional(time("Bus transaction latency", None(SIMPLE))),
    time("Bulk sector transfer time", None(SIMPLE)),
    flag("Never disconnect", None(SIMPLE)),
    flag("Print stats", None(SIMPLE)),
    time("Command overhead", None(SIMPLE)),
    optional(time("Constant access time", None(SIMPLE))),
    time("Access time", None(SIMPLE)),
];

/// Keys of a cache block. DiskSim names the ranges of its cache policies, from `CACHE_REPLACE_MIN`
/// to `CACHE_PREFETCH_MAX`, but not their numbers, so any whole number is accepted.
#[rustfmt::skip]
pub(super) const CACHE_MEMORY: &[Key] = &[
    at_least("Cache size", 0, None(OTHER_CACHE)),
    optional(list("SLRU segments", None(OTHER_CACHE))),
    at_least("Line size", 0, None(OTHER_CACHE)),
    at_least("Bit granularity", 1, None(OTHER_CACHE)),
    at_least("Lock granularity", 1, None(OTHER_CACHE)),
    flag("Shared read locks", None(OTHER_CACHE)),
    at_least("Max request size", 0, None(OTHER_CACHE)),
    integer("Replacement policy", None(OTHER_CACHE)),
    integer("Allocation policy", None(OTHER_CACHE)),
    integer("Write scheme", None(OTHER_CACHE)),
    integer("Flush policy", None(OTHER_CACHE)),
    time("Flush period", None(OTHER_CACHE)),
    number("Flush idle delay", None(OTHER_CACHE)),
    at_least("Flush max line cluster", 0, None(OTHER_CACHE)),
    integer("Read prefetch type", None(OTHER_CACHE)),
    integer("Write prefetch type", None(OTHER_CACHE)),
    flag("Line-by-line fetches", None(OTHER_CACHE)),
    at_least("Max gather", 0, None(OTHER_CACHE)),
];

#[rustfmt::skip]
pub(super) const IOSIM: &[Key] = &[
    optional(number("I/O Trace Time Scale", None(LOAD))),
    optional(list("I/O Mappings", None(LOAD))),
];

#[rustfmt::skip]
pub(super) const GLOBAL: &[Key] = &[
    optional(integer("Init Seed", None(LOAD))),
    optional(flag("Init Seed with time", None(LOAD))),
    optional(integer("Real Seed", None(LOAD))),
    optional(flag("Real Seed with time", None(LOAD))),
    optional(number("Statistic warm-up time", None(OUTPUT))),
    optional(integer("Statistic warm-up IOs", None(OUTPUT))),
    word("Stat definition file", None(OUTPUT)),
    optional(word("Output file for trace of I/O requests simulated", None(OUTPUT))),
    optional(word("Detailed execution trace", None(OUTPUT))),
];
