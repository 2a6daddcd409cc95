//! Specification of a translation layer, and the errors of an invalid one.

use crate::features::Features;

/// Geometry of superblocks. A superblock is one block of every plane of every die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Number of superblocks of the drive.
    pub superblock_count: u32,
    /// Number of dies that a superblock spans.
    pub die_count: u32,
    /// Number of mapping units in one program of a die.
    pub units_per_program: u32,
    /// Number of program units of a superblock on each die.
    pub rows_per_superblock: u32,
}

impl Geometry {
    /// Returns the number of mapping units in a superblock.
    pub fn superblock_units(&self) -> u32 {
        self.die_count * self.units_per_program * self.rows_per_superblock
    }
}

/// Policy that chooses the victim of a garbage collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VictimPolicy {
    /// Greedy: the superblock with the fewest valid mapping units is the victim.
    Greedy,
    /// Random choices: the victim has the fewest valid mapping units among this many superblocks
    /// drawn at random.
    RandomChoices(u32),
    /// FIFO: the superblock that was closed first is the victim.
    OldestFirst,
    /// Cost-benefit: the superblock with the greatest (1 - u) age / 2u is the victim, where u is
    /// its valid share.
    CostBenefit,
}

/// Write frontier for the data that garbage collection moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataSeparation {
    /// Moved data share the host's write frontier of the victim's stream.
    Mixed,
    /// All moved data share one write frontier, separate from the host's.
    MovedApart,
    /// Moved data have one write frontier per stream, separate from the host's.
    ByStream,
}

/// Specification of a translation layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Specification {
    /// Geometry of the superblocks.
    pub geometry: Geometry,
    /// Number of logical units that the host can map.
    pub logical_units: u32,
    /// Policy that chooses victims of garbage collection.
    pub policy: VictimPolicy,
    /// Write frontier for data that garbage collection moves.
    pub separation: DataSeparation,
    /// Number of host streams (placement identifiers), at least 1.
    pub stream_count: u32,
    /// Number of free superblocks below which garbage collection begins.
    pub soft_free_superblocks: u32,
    /// Number of free superblocks below which the host waits for garbage collection.
    pub hard_free_superblocks: u32,
    /// Difference of erase counts at which static wear levelling begins; `None` disables it.
    pub wear_threshold_erases: Option<u32>,
    /// Seed of the layer's random choices.
    pub seed: u64,
}

/// Reason why a translation layer cannot work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImpossibleSpecification {
    /// A count that must be at least 1 is 0; holds its name.
    ZeroParameter(&'static str),
    /// The number of physical units exceeds the range of map entries.
    TooManyUnits(u64),
    /// The drive has no over-provisioning.
    NoOverProvisioning {
        /// Number of logical units that the host can map.
        logical: u64,
        /// Number of physical units of the drive.
        physical: u64,
    },
    /// The free reserve and the open superblocks use up the over-provisioning, so garbage
    /// collection would deadlock.
    Deadlock {
        /// Soft threshold of free superblocks.
        free: u32,
        /// Number of write frontiers, each with an open superblock.
        open: u32,
        /// Number of mapping units in superblocks that are neither free nor open.
        closed: u64,
        /// Number of logical units that the host can map.
        logical: u64,
    },
    /// The hard threshold is so low that the host could take the superblock that garbage collection
    /// needs.
    HardThresholdTooLow {
        /// Hard threshold of free superblocks.
        hard: u32,
        /// Minimum hard threshold of free superblocks that works.
        needed: u32,
    },
    /// The main area has fewer than 2 bits per cell, so it cannot have an SLC cache.
    TooFewBitsPerCell(u32),
    /// A program unit cannot be divided into whole SLC program units.
    UnevenCache {
        /// Number of mapping units in a program.
        program_units: u32,
        /// Bits per cell of the main area.
        bits: u32,
    },
    /// The number of dies is not a multiple of the parity stripe, or a stripe has no data.
    UnevenParity {
        /// Number of program units per parity stripe.
        stripe: u32,
        /// Number of dies of the drive.
        dies: u32,
    },
    /// The precondition state covers more mapping units than the drive has.
    OverfilledPrecondition {
        /// Number of mapping units of the precondition state.
        filled: u32,
        /// Number of logical units that the host can map.
        logical: u32,
    },
    /// A share of the precondition state is not within 0 to 100 %.
    InvalidShare,
    /// The soft threshold is not above the hard one, so background garbage collection would begin
    /// too late.
    SoftThresholdBelowHard {
        /// Soft threshold of free superblocks.
        soft: u32,
        /// Hard threshold of free superblocks.
        hard: u32,
    },
}

impl std::fmt::Display for ImpossibleSpecification {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ZeroParameter(value) => write!(formatter, "{value} is 0: give at least 1"),
            Self::TooManyUnits(value) => write!(
                formatter,
                "{value} physical mapping units: a map with entries of 4 bytes addresses at most {max}",
                max = u32::MAX - 1
            ),
            Self::NoOverProvisioning { logical, physical } => write!(
                formatter,
                "{logical} logical of {physical} physical mapping units leave no over-provisioning: garbage collection could never free a superblock"
            ),
            Self::Deadlock {
                free,
                open,
                closed,
                logical,
            } => write!(
                formatter,
                "{free} free and {open} open superblocks leave {closed} mapping units for {logical} logical ones: \
         garbage collection would deadlock"
            ),
            Self::HardThresholdTooLow { hard, needed } => write!(
                formatter,
                "the hard threshold of {hard} free superblocks is too low: garbage collection needs {needed} for the data that it moves"
            ),
            Self::TooFewBitsPerCell(value) => write!(
                formatter,
                "an SLC cache on superblocks of {value} bits per cell: give 2, 3 (TLC) or 4 (QLC)"
            ),
            Self::UnevenCache {
                program_units,
                bits,
            } => write!(
                formatter,
                "a program of {program_units} mapping units does not divide into {bits} programs of the SLC cache"
            ),
            Self::UnevenParity { stripe, dies } => write!(
                formatter,
                "parity of {stripe} program units over {dies} dies: give at least 2 program units, in a number that divides the dies"
            ),
            Self::OverfilledPrecondition { filled, logical } => write!(
                formatter,
                "preconditioning writes {filled} mapping units, more than the {logical} of the drive"
            ),
            Self::InvalidShare => formatter.write_str(
                "the preconditioning has a share of writes or of space that is not from 0 to 100 %",
            ),
            Self::SoftThresholdBelowHard { soft, hard } => write!(
                formatter,
                "the soft threshold of {soft} free superblocks is not above the hard threshold of {hard}"
            ),
        }
    }
}

impl std::error::Error for ImpossibleSpecification {}

impl Specification {
    /// Returns the number of write frontiers for garbage collection and wear levelling.
    pub(crate) fn moved_data_frontiers(&self) -> u32 {
        let collection = match self.separation {
            DataSeparation::Mixed => 0,
            DataSeparation::MovedApart => 1,
            DataSeparation::ByStream => self.stream_count,
        };
        collection + u32::from(self.wear_threshold_erases.is_some())
    }

    /// Validates that the translation layer can work without end.
    ///
    /// # Errors
    /// With the first parameter that makes it impossible.
    pub fn check(&self) -> Result<(), ImpossibleSpecification> {
        self.check_with(&Features::default())
    }

    /// Validates that the translation layer can work without end with these features.
    ///
    /// # Errors
    /// With the first parameter that makes it impossible.
    pub fn check_with(&self, features: &Features) -> Result<(), ImpossibleSpecification> {
        self.check_counts()?;
        features.check(self)?;
        let (units, superblocks) = (
            u64::from(features.data_units(self.geometry.superblock_units())),
            self.geometry.superblock_count,
        );
        let (physical, logical) = (
            units * u64::from(superblocks),
            u64::from(self.logical_units) + u64::from(features.system_units),
        );
        if logical >= physical {
            return Err(ImpossibleSpecification::NoOverProvisioning { logical, physical });
        }
        let (hard, soft) = (self.hard_free_superblocks, self.soft_free_superblocks);
        let needed = self.moved_data_frontiers().max(1) + 1;
        if hard < needed {
            return Err(ImpossibleSpecification::HardThresholdTooLow { hard, needed });
        }
        if soft <= hard {
            return Err(ImpossibleSpecification::SoftThresholdBelowHard { soft, hard });
        }
        let open = (self.stream_count)
            .saturating_add(self.moved_data_frontiers())
            .saturating_add(features.added_frontier_count());
        let taken = soft
            .saturating_add(open)
            .saturating_add(features.fixed_superblocks());
        let closed = units * u64::from(superblocks.saturating_sub(taken));
        if closed <= logical {
            return Err(ImpossibleSpecification::Deadlock {
                free: soft,
                open,
                closed,
                logical,
            });
        }
        Ok(())
    }

    fn check_counts(&self) -> Result<(), ImpossibleSpecification> {
        let Geometry {
            superblock_count: superblocks,
            die_count: dies,
            units_per_program: program_units,
            rows_per_superblock: rows,
        } = self.geometry;
        let choices = if let VictimPolicy::RandomChoices(d) = self.policy {
            d
        } else {
            1
        };
        for (name, count) in [
            ("superblocks", superblocks),
            ("dies", dies),
            ("mapping units per program", program_units),
            ("rows", rows),
            (
                "logical units (an over-provisioning of 1)",
                self.logical_units,
            ),
            ("streams", self.stream_count),
            ("choices", choices),
        ] {
            if count == 0 {
                return Err(ImpossibleSpecification::ZeroParameter(name));
            }
        }
        let physical = [dies, program_units, rows]
            .iter()
            .fold(u64::from(superblocks), |product, &count| {
                product.saturating_mul(u64::from(count))
            });
        if physical >= u64::from(u32::MAX) {
            return Err(ImpossibleSpecification::TooManyUnits(physical));
        }
        Ok(())
    }
}
