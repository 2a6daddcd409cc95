//! Key tables of the blocks `disksim_disk` and `disksim_ioqueue`.

use super::Effect::{ActsAs, None, Used};
use super::run::OUTPUT;
use super::{Key, Max, at_least, between, block, flag, integer, share, time, whole};

const SNEAKY: &str = "no drive that was measured has such hits";
const UNUSED: &str = "DiskSim does not use it";
const NO_SERVICE_TIME: &str = "no service time depends on it";
const LEAVING: &str =
    "to leave the modelled bus takes no time, and a transfer comes back to it once";
const OF_EXTRA: &str = "of `Extra write disconnect`, which is not modelled";
const AS_SOON: &str = "data cross the modelled link as soon as the platter gives them";
const ON_ARRIVAL: &str = "the modelled drive stops reading ahead when a command needs the arm";
const SEGMENTS: &str = "Number of buffer segments";
const SEGMENT_BLOCKS: &str = "Segment size (in blks)";

#[rustfmt::skip]
pub(super) const DISK: &[Key] = &[
    block("Model", Used),
    block("Scheduler", Used),
    at_least("Max queue length", 0, Used),
    time("Bulk sector transfer time", Used),
    whole(SEGMENT_BLOCKS, 1, Max::Sectors, Used),
    at_least(SEGMENTS, 0, Used),
    flag("Print stats", None(OUTPUT)),
    time("Per-request overhead time", Used),
    time("Time scale for overheads", Used),
    flag("Hold bus entire read xfer", Used),
    flag("Hold bus entire write xfer", Used),
    flag("Allow almost read hits", ActsAs(0.0, SNEAKY)),
    flag("Allow sneaky full read hits", ActsAs(0.0, SNEAKY)),
    flag("Allow sneaky partial read hits", ActsAs(0.0, SNEAKY)),
    flag("Allow sneaky intermediate read hits", ActsAs(0.0, SNEAKY)),
    flag("Allow read hits on write data", Used),
    flag("Allow write prebuffering", ActsAs(0.0, "a write's data come when it is served: 0 in every drive that was measured")),
    between("Preseeking level", 0, 2, ActsAs(0.0, "the modelled arm moves when a command is done")),
    flag("Never disconnect", Used),
    whole("Avg sectors per cylinder", 1, Max::Sectors, None(NO_SERVICE_TIME)),
    whole("Maximum number of write segments", 1, Max::OfKey(SEGMENTS), Used),
    flag("Use separate write segment", Used),
    share("Low (write) water mark", ActsAs(0.0, AS_SOON)),
    share("High (read) water mark", Used),
    flag("Set watermark by reqsize", Used),
    flag("Calc sector by sector", None(NO_SERVICE_TIME)),
    between("Enable caching in buffer", 0, 2, Used),
    between("Buffer continuous read", 0, 4, Used),
    whole("Minimum read-ahead (blks)", 0, Max::OfKey(SEGMENT_BLOCKS), Used),
    whole("Maximum read-ahead (blks)", 0, Max::OfKey(SEGMENT_BLOCKS), Used),
    between("Read-ahead over requested", -1, 1, Used),
    flag("Read-ahead on idle hit", Used),
    flag("Read any free blocks", Used),
    between("Fast write level", 0, 2, Used),
    flag("Combine seq writes", ActsAs(1.0, "the modelled buffer joins writes that follow each other")),
    flag("Stop prefetch in sector", ActsAs(0.0, "the modelled drive stops reading ahead at the end of a sector")),
    flag("Disconnect write if seek", ActsAs(0.0, "0 in every drive that was measured")),
    flag("Write hit stop prefetch", ActsAs(1.0, ON_ARRIVAL)),
    flag("Read directly to buffer", ActsAs(1.0, "1 in every drive that was measured")),
    flag("Immed transfer partial hit", ActsAs(1.0, "what the modelled buffer has of a read crosses at once")),
    time("Read hit over. after read", Used),
    time("Read hit over. after write", Used),
    time("Read miss over. after read", Used),
    time("Read miss over. after write", Used),
    time("Write hit over. after read", Used),
    time("Write hit over. after write", Used),
    time("Write miss over. after read", Used),
    time("Write miss over. after write", Used),
    time("Read completion overhead", Used),
    time("Write completion overhead", Used),
    time("Data preparation overhead", Used),
    time("First reselect overhead", Used),
    time("Other reselect overhead", ActsAs(0.0, LEAVING)),
    time("Read disconnect afterread", ActsAs(0.0, LEAVING)),
    time("Read disconnect afterwrite", ActsAs(0.0, LEAVING)),
    time("Write disconnect overhead", ActsAs(0.0, LEAVING)),
    flag("Extra write disconnect", ActsAs(0.0, LEAVING)),
    time("Extradisc command overhead", None(OF_EXTRA)),
    time("Extradisc disconnect overhead", None(OF_EXTRA)),
    time("Extradisc inter-disconnect delay", None(OF_EXTRA)),
    time("Extradisc 2nd disconnect overhead", None(OF_EXTRA)),
    time("Extradisc seek delta", None(UNUSED)),
    time("Minimum seek delay", None(UNUSED)),
    between("Immediate buffer read", 0, 2, Used),
    between("Immediate buffer write", 0, 2, Used),
];

const NEITHER: &str = "requests are neither joined nor timed out";
const OF_SCHEME: &str = "of a scheme that is not modelled";
const INITIATION: &str = "the modelled drive predicts positioning from the start of the arm";

#[rustfmt::skip]
pub(super) const QUEUE: &[Key] = &[
    between("Scheduling policy", 1, 28, Used),
    between("Cylinder mapping strategy", 0, 6, None("the modelled drive knows the cylinders of its sectors")),
    time("Write initiation delay", ActsAs(0.0, INITIATION)),
    time("Read initiation delay", ActsAs(0.0, INITIATION)),
    integer("Sequential stream scheme", ActsAs(0.0, NEITHER)),
    at_least("Maximum concat size", 0, None(OF_SCHEME)),
    between("Overlapping request scheme", 0, 2, ActsAs(0.0, NEITHER)),
    between("Sequential stream diff maximum", 0, 2, None(OF_SCHEME)),
    integer("Scheduling timeout scheme", ActsAs(0.0, NEITHER)),
    at_least("Timeout time/weight", 0, Used),
    between("Timeout scheduling", 0, 21, None(OF_SCHEME)),
    between("Scheduling priority scheme", 0, 1, ActsAs(0.0, "requests have no priorities")),
    between("Priority scheduling", 0, 21, None(OF_SCHEME)),
];
