//! Key tables of the block `dm_disk` and its nested blocks.

use super::KeyEffect::{Ignored, Used};
use super::{
    SpecificationKey, block, integer, integer_at_least, integer_between, list, number,
    number_range, optional, time_ms, word,
};

#[rustfmt::skip]
pub(super) const DISK: &[SpecificationKey] = &[
    integer_at_least("Block count", 0, Ignored("the sum of the layout holds")),
    integer_at_least("Number of data surfaces", 1, Used),
    integer_at_least("Number of cylinders", 1, Used),
    optional(block("Mechanical Model", Used)),
    block("Layout Model", Used),
];

#[rustfmt::skip]
pub(super) const MECHANICS: &[SpecificationKey] = &[
    word("Access time type", Ignored("the time of an access is that of its parts")),
    optional(time_ms("Constant access time", Ignored("the time of an access is that of its parts"))),
    word("Seek type", Used),
    optional(time_ms("Average seek time", Used)),
    optional(time_ms("Constant seek time", Used)),
    optional(time_ms("Single cylinder seek time", Used)),
    optional(time_ms("Full strobe seek time", Used)),
    optional(word("Full seek curve", Used)),
    number("Add. write settling delay", Used),
    time_ms("Head switch time", Used),
    integer_at_least("Rotation speed (in rpms)", 1, Used),
    number_range("Percent error in rpms", Some(0.0), Some(100.0), Ignored("DiskSim 4.0 does not use it: the true speed is found in a trace")),
    optional(list("First ten seek times", Used)),
    optional(list("HPL seek equation values", Used)),
];

#[rustfmt::skip]
pub(super) const ZONED: &[SpecificationKey] = &[
    integer_between("LBN-to-PBN mapping scheme", 0, 2, Used),
    integer_between("Sparing scheme used", 0, 10, Used),
    integer_at_least("Rangesize for sparing", 1, Used),
    optional(word("Skew units", Ignored("only the key of a zone has an effect"))),
    list("Zones", Used),
];

#[rustfmt::skip]
pub(super) const ZONE: &[SpecificationKey] = &[
    integer_at_least("First cylinder number", 0, Used),
    integer_at_least("Last cylinder number", 0, Used),
    integer_at_least("Blocks per track", 1, Used),
    number("Offset of first block", Used),
    optional(word("Skew units", Used)),
    integer("Empty space at zone front", Used),
    optional(number("Skew for track switch", Used)),
    optional(number("Skew for cylinder switch", Used)),
    integer("Number of spares", Used),
    list("slips", Used),
    list("defects", Used),
];

#[rustfmt::skip]
pub(super) const MAPPED: &[SpecificationKey] = &[
    word("Layout Map File", Used),
    list("Zones", Used),
];

const MAPPED_BLOCKS: &str = "the map determines the block positions";

#[rustfmt::skip]
pub(super) const MAPPED_ZONE: &[SpecificationKey] = &[
    integer_at_least("First cylinder number", 0, Used),
    integer_at_least("Last cylinder number", 0, Used),
    integer_at_least("First LBN", 0, Ignored(MAPPED_BLOCKS)),
    integer_at_least("Last LBN", 0, Ignored(MAPPED_BLOCKS)),
    integer_at_least("Blocks per track", 1, Used),
    optional(number("Zone Skew", Used)),
    optional(word("Skew units", Used)),
    optional(number("Skew for track switch", Used)),
    optional(number("Skew for cylinder switch", Used)),
];

#[rustfmt::skip]
pub(super) const INDEXED: &[SpecificationKey] = &[
    list("TP", Used),
    list("IDX", Used),
    list("Slips", Used),
    list("Remaps", Used),
];
