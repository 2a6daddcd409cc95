//! Key tables of the blocks `disksim_disk` and `disksim_ioqueue`.

use super::Effect::{ActsAs, None, Used};
use super::run::DISKSIM_OUTPUT;
use super::{
    Key, Max, block, flag, integer, integer_at_least, integer_between, integer_range, share,
    time_ms,
};

const NO_SUCH_HITS: &str = "no drive that was measured has such hits";
const UNUSED_BY_DISKSIM: &str = "DiskSim does not use it";
const NO_SERVICE_TIME: &str = "no service time depends on it";
const BUS_DISCONNECTION: &str =
    "to leave the modelled bus takes no time, and a transfer comes back to it once";
const EXTRA_WRITE_DISCONNECT: &str = "of `Extra write disconnect`, which is not modelled";
const TRANSFER_AT_MEDIA_RATE: &str =
    "data cross the modelled link as soon as the platter gives them";
const READ_AHEAD_STOPS_ON_COMMAND: &str =
    "the modelled drive stops reading ahead when a command needs the arm";
const SEGMENTS: &str = "Number of buffer segments";
const SEGMENT_BLOCKS: &str = "Segment size (in blks)";

#[rustfmt::skip]
pub(super) const DISK: &[Key] = &[
    block("Model", Used),
    block("Scheduler", Used),
    integer_at_least("Max queue length", 0, Used),
    time_ms("Bulk sector transfer time", Used),
    integer_range(SEGMENT_BLOCKS, 1, Max::Sectors, Used),
    integer_at_least(SEGMENTS, 0, Used),
    flag("Print stats", None(DISKSIM_OUTPUT)),
    time_ms("Per-request overhead time", Used),
    time_ms("Time scale for overheads", Used),
    flag("Hold bus entire read xfer", Used),
    flag("Hold bus entire write xfer", Used),
    flag("Allow almost read hits", ActsAs(0.0, NO_SUCH_HITS)),
    flag("Allow sneaky full read hits", ActsAs(0.0, NO_SUCH_HITS)),
    flag("Allow sneaky partial read hits", ActsAs(0.0, NO_SUCH_HITS)),
    flag("Allow sneaky intermediate read hits", ActsAs(0.0, NO_SUCH_HITS)),
    flag("Allow read hits on write data", Used),
    flag("Allow write prebuffering", ActsAs(0.0, "a write's data come when it is served: 0 in every drive that was measured")),
    integer_between("Preseeking level", 0, 2, ActsAs(0.0, "the modelled arm moves when a command is done")),
    flag("Never disconnect", Used),
    integer_range("Avg sectors per cylinder", 1, Max::Sectors, None(NO_SERVICE_TIME)),
    integer_range("Maximum number of write segments", 1, Max::OfKey(SEGMENTS), Used),
    flag("Use separate write segment", Used),
    share("Low (write) water mark", ActsAs(0.0, TRANSFER_AT_MEDIA_RATE)),
    share("High (read) water mark", Used),
    flag("Set watermark by reqsize", Used),
    flag("Calc sector by sector", None(NO_SERVICE_TIME)),
    integer_between("Enable caching in buffer", 0, 2, Used),
    integer_between("Buffer continuous read", 0, 4, Used),
    integer_range("Minimum read-ahead (blks)", 0, Max::OfKey(SEGMENT_BLOCKS), Used),
    integer_range("Maximum read-ahead (blks)", 0, Max::OfKey(SEGMENT_BLOCKS), Used),
    integer_between("Read-ahead over requested", -1, 1, Used),
    flag("Read-ahead on idle hit", Used),
    flag("Read any free blocks", Used),
    integer_between("Fast write level", 0, 2, Used),
    flag("Combine seq writes", ActsAs(1.0, "the modelled buffer joins writes that follow each other")),
    flag("Stop prefetch in sector", ActsAs(0.0, "the modelled drive stops reading ahead at the end of a sector")),
    flag("Disconnect write if seek", ActsAs(0.0, "0 in every drive that was measured")),
    flag("Write hit stop prefetch", ActsAs(1.0, READ_AHEAD_STOPS_ON_COMMAND)),
    flag("Read directly to buffer", ActsAs(1.0, "1 in every drive that was measured")),
    flag("Immed transfer partial hit", ActsAs(1.0, "what the modelled buffer has of a read crosses at once")),
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
    time_ms("Other reselect overhead", ActsAs(0.0, BUS_DISCONNECTION)),
    time_ms("Read disconnect afterread", ActsAs(0.0, BUS_DISCONNECTION)),
    time_ms("Read disconnect afterwrite", ActsAs(0.0, BUS_DISCONNECTION)),
    time_ms("Write disconnect overhead", ActsAs(0.0, BUS_DISCONNECTION)),
    flag("Extra write disconnect", ActsAs(0.0, BUS_DISCONNECTION)),
    time_ms("Extradisc command overhead", None(EXTRA_WRITE_DISCONNECT)),
    time_ms("Extradisc disconnect overhead", None(EXTRA_WRITE_DISCONNECT)),
    time_ms("Extradisc inter-disconnect delay", None(EXTRA_WRITE_DISCONNECT)),
    time_ms("Extradisc 2nd disconnect overhead", None(EXTRA_WRITE_DISCONNECT)),
    time_ms("Extradisc seek delta", None(UNUSED_BY_DISKSIM)),
    time_ms("Minimum seek delay", None(UNUSED_BY_DISKSIM)),
    integer_between("Immediate buffer read", 0, 2, Used),
    integer_between("Immediate buffer write", 0, 2, Used),
];

const NO_JOINS_OR_TIMEOUTS: &str = "requests are neither joined nor timed out";
const UNMODELLED_SCHEME: &str = "of a scheme that is not modelled";
const POSITIONING_FROM_ARM_START: &str =
    "the modelled drive predicts positioning from the start of the arm";

#[rustfmt::skip]
pub(super) const QUEUE: &[Key] = &[
    integer_between("Scheduling policy", 1, 28, Used),
    integer_between("Cylinder mapping strategy", 0, 6, None("the modelled drive knows the cylinders of its sectors")),
    time_ms("Write initiation delay", ActsAs(0.0, POSITIONING_FROM_ARM_START)),
    time_ms("Read initiation delay", ActsAs(0.0, POSITIONING_FROM_ARM_START)),
    integer("Sequential stream scheme", ActsAs(0.0, NO_JOINS_OR_TIMEOUTS)),
    integer_at_least("Maximum concat size", 0, None(UNMODELLED_SCHEME)),
    integer_between("Overlapping request scheme", 0, 2, ActsAs(0.0, NO_JOINS_OR_TIMEOUTS)),
    integer_between("Sequential stream diff maximum", 0, 2, None(UNMODELLED_SCHEME)),
    integer("Scheduling timeout scheme", ActsAs(0.0, NO_JOINS_OR_TIMEOUTS)),
    integer_at_least("Timeout time/weight", 0, Used),
    integer_between("Timeout scheduling", 0, 21, None(UNMODELLED_SCHEME)),
    integer_between("Scheduling priority scheme", 0, 1, ActsAs(0.0, "requests have no priorities")),
    integer_between("Priority scheduling", 0, 21, None(UNMODELLED_SCHEME)),
];
