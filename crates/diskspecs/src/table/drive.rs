//! Key tables of the blocks `disksim_disk` and `disksim_ioqueue`.

use super::KeyEffect::{Ignored, Substituted, Used};
use super::run::DISKSIM_OUTPUT;
use super::{
    IntegerMax, SpecificationKey, block, flag, integer, integer_at_least, integer_between,
    integer_range, share, time_ms,
};

const NO_MEASURED_HITS: &str = "no measured drive has such hits";
const UNUSED_BY_DISKSIM: &str = "DiskSim does not use it";
const NO_SERVICE_TIME: &str = "no service time depends on it";
const BUS_DISCONNECTION: &str =
    "disconnecting from the modelled bus takes no time, and a transfer reconnects once";
const EXTRA_WRITE_DISCONNECT: &str = "belongs to `Extra write disconnect`, which is not modelled";
const MEDIA_RATE_TRANSFER: &str =
    "data crosses the modelled link as soon as it is read from the platter";
const READ_AHEAD_STOPS_ON_COMMAND: &str =
    "the modelled drive stops read-ahead when a command needs the actuator";
const SEGMENTS: &str = "Number of buffer segments";
const SEGMENT_BLOCKS: &str = "Segment size (in blks)";

#[rustfmt::skip]
pub(super) const DISK: &[SpecificationKey] = &[
    block("Model", Used),
    block("Scheduler", Used),
    integer_at_least("Max queue length", 0, Used),
    time_ms("Bulk sector transfer time", Used),
    integer_range(SEGMENT_BLOCKS, 1, IntegerMax::DiskSectors, Used),
    integer_at_least(SEGMENTS, 0, Used),
    flag("Print stats", Ignored(DISKSIM_OUTPUT)),
    time_ms("Per-request overhead time", Used),
    time_ms("Time scale for overheads", Used),
    flag("Hold bus entire read xfer", Used),
    flag("Hold bus entire write xfer", Used),
    flag("Allow almost read hits", Substituted(0.0, NO_MEASURED_HITS)),
    flag("Allow sneaky full read hits", Substituted(0.0, NO_MEASURED_HITS)),
    flag("Allow sneaky partial read hits", Substituted(0.0, NO_MEASURED_HITS)),
    flag("Allow sneaky intermediate read hits", Substituted(0.0, NO_MEASURED_HITS)),
    flag("Allow read hits on write data", Used),
    flag("Allow write prebuffering", Substituted(0.0, "write data arrives when the write is served; 0 in every measured drive")),
    integer_between("Preseeking level", 0, 2, Substituted(0.0, "the modelled actuator moves after the command completes")),
    flag("Never disconnect", Used),
    integer_range("Avg sectors per cylinder", 1, IntegerMax::DiskSectors, Ignored(NO_SERVICE_TIME)),
    integer_range("Maximum number of write segments", 1, IntegerMax::OtherKey(SEGMENTS), Used),
    flag("Use separate write segment", Used),
    share("Low (write) water mark", Substituted(0.0, MEDIA_RATE_TRANSFER)),
    share("High (read) water mark", Used),
    flag("Set watermark by reqsize", Used),
    flag("Calc sector by sector", Ignored(NO_SERVICE_TIME)),
    integer_between("Enable caching in buffer", 0, 2, Used),
    integer_between("Buffer continuous read", 0, 4, Used),
    integer_range("Minimum read-ahead (blks)", 0, IntegerMax::OtherKey(SEGMENT_BLOCKS), Used),
    integer_range("Maximum read-ahead (blks)", 0, IntegerMax::OtherKey(SEGMENT_BLOCKS), Used),
    integer_between("Read-ahead over requested", -1, 1, Used),
    flag("Read-ahead on idle hit", Used),
    flag("Read any free blocks", Used),
    integer_between("Fast write level", 0, 2, Used),
    flag("Combine seq writes", Substituted(1.0, "the modelled buffer merges sequential writes")),
    flag("Stop prefetch in sector", Substituted(0.0, "the modelled drive stops read-ahead at the end of a sector")),
    flag("Disconnect write if seek", Substituted(0.0, "0 in every measured drive")),
    flag("Write hit stop prefetch", Substituted(1.0, READ_AHEAD_STOPS_ON_COMMAND)),
    flag("Read directly to buffer", Substituted(1.0, "1 in every measured drive")),
    flag("Immed transfer partial hit", Substituted(1.0, "the modelled buffer transfers the cached part of a read immediately")),
    time_ms("Read hit over. after read", Used),
    time_ms("Read hit over. after write", Used),
    time_ms("Read miss over. after read", Used),
    time_ms("Read miss over. after write", Used),
    time_ms("Write hit over. after read", Used),
    time_ms("Write hit over. after write", Used),
    time_ms("Write miss over. after read", Used),
    time_ms("Write miss over. after write", Used),
    time_ms("Read completion overhead", Used),
    time_ms("Write completion overhead", Used),
    time_ms("Data preparation overhead", Used),
    time_ms("First reselect overhead", Used),
    time_ms("Other reselect overhead", Substituted(0.0, BUS_DISCONNECTION)),
    time_ms("Read disconnect afterread", Substituted(0.0, BUS_DISCONNECTION)),
    time_ms("Read disconnect afterwrite", Substituted(0.0, BUS_DISCONNECTION)),
    time_ms("Write disconnect overhead", Substituted(0.0, BUS_DISCONNECTION)),
    flag("Extra write disconnect", Substituted(0.0, BUS_DISCONNECTION)),
    time_ms("Extradisc command overhead", Ignored(EXTRA_WRITE_DISCONNECT)),
    time_ms("Extradisc disconnect overhead", Ignored(EXTRA_WRITE_DISCONNECT)),
    time_ms("Extradisc inter-disconnect delay", Ignored(EXTRA_WRITE_DISCONNECT)),
    time_ms("Extradisc 2nd disconnect overhead", Ignored(EXTRA_WRITE_DISCONNECT)),
    time_ms("Extradisc seek delta", Ignored(UNUSED_BY_DISKSIM)),
    time_ms("Minimum seek delay", Ignored(UNUSED_BY_DISKSIM)),
    integer_between("Immediate buffer read", 0, 2, Used),
    integer_between("Immediate buffer write", 0, 2, Used),
];

const NO_JOINS_OR_TIMEOUTS: &str = "requests are neither merged nor timed out";
const UNMODELLED_SCHEME: &str = "belongs to a scheme that is not modelled";
const POSITIONING_FROM_ARM_START: &str =
    "the modelled drive predicts positioning from the start of the seek";

#[rustfmt::skip]
pub(super) const QUEUE: &[SpecificationKey] = &[
    integer_between("Scheduling policy", 1, 28, Used),
    integer_between("Cylinder mapping strategy", 0, 6, Ignored("the modelled drive uses the cylinders of its sectors")),
    time_ms("Write initiation delay", Substituted(0.0, POSITIONING_FROM_ARM_START)),
    time_ms("Read initiation delay", Substituted(0.0, POSITIONING_FROM_ARM_START)),
    integer("Sequential stream scheme", Substituted(0.0, NO_JOINS_OR_TIMEOUTS)),
    integer_at_least("Maximum concat size", 0, Ignored(UNMODELLED_SCHEME)),
    integer_between("Overlapping request scheme", 0, 2, Substituted(0.0, NO_JOINS_OR_TIMEOUTS)),
    integer_between("Sequential stream diff maximum", 0, 2, Ignored(UNMODELLED_SCHEME)),
    integer("Scheduling timeout scheme", Substituted(0.0, NO_JOINS_OR_TIMEOUTS)),
    integer_at_least("Timeout time/weight", 0, Used),
    integer_between("Timeout scheduling", 0, 21, Ignored(UNMODELLED_SCHEME)),
    integer_between("Scheduling priority scheme", 0, 1, Substituted(0.0, "requests have no priorities")),
    integer_between("Priority scheduling", 0, 21, Ignored(UNMODELLED_SCHEME)),
];
